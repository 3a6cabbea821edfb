from streammetrics import evaluate

names = ["ndcg_cut_10", "map", "recip_rank", "recall_100"]
found = evaluate("qrels.txt", "bm25.run", names, like="trec_eval")
print(found)
first_query = found.per_query["q0"]
interval = found.interval("MRR")
