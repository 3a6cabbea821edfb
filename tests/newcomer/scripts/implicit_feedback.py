import polars as pl

from streammetrics import evaluate

clicks = pl.read_csv("clicked.csv")  # user, item: what was clicked has no grade
shown = pl.read_csv("recommended.csv")  # user, item, score
names = ["hr@5", "recall@5", "mrr@5"]
found = evaluate(clicks, shown, names)
print(found)
hit_rate, recall = found["hr@5"], found["recall@5"]
