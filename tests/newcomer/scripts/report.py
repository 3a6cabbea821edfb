import subprocess
from pathlib import Path

config = """
source = { kind = "file", path = "day.parquet" }
event = { time = "at", variant = "variant", user = "user", label = "click", score = "score" }
metrics = { auc.type = "HistogramAUC", ctr.type = "Ratio" }
store.url = "day.db"
"""
Path("day.toml").write_text(config)
for command in ("run day.toml --until-end --no-serve", "report day.db --by variant -o day.html"):
    subprocess.run(["streammetrics", *command.split()], check=True)
