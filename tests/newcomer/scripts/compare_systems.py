from streammetrics import compare_runs

runs = {"bm25": "bm25.run", "tuned": "tuned.run"}
compared = compare_runs("qrels.txt", runs, ["ndcg@10", "map"], like="trec_eval")
print(compared)
difference = compared.difference("tuned", "map")
print(f"{difference.difference:+.3f}, p = {difference.pvalue:.3g}")
table = compared.to_latex(stars=True)
