import polars as pl

from streammetrics import evaluate

judgments = pl.read_parquet("judgments.parquet")  # query, doc, grade, language
names = ["ndcg@10", "map"]
found = evaluate(judgments, "bm25.run", names, by="language", like="trec_eval")
print(found)
german = found.slices["de"]
value, interval = german["map"], german.interval("map")
