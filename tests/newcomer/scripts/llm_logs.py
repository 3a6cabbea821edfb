from streammetrics.evaluation import compare_samples, evaluate_samples

found = evaluate_samples("base.json", users="passage")  # questions about a passage are alike
print(found)
interval = found.interval("match")
models = {"base": "base.json", "tuned": "tuned.json"}
difference = compare_samples(models, users="passage").difference("tuned", "match")
