from pathlib import Path

import polars as pl

from streammetrics import Calibration, ExactAUC, Panel, PerKey

models = PerKey(Panel({"auc": ExactAUC(), "losses": Calibration()}))
models.update_from(pl.read_parquet("day.parquet"), key="variant", labels="click", scores="score")
result = models.compute()
wide = result.to_frame("polars", wide=True)  # a row for each variant
tables = {"md": result.to_markdown(), "tex": result.to_latex(), "csv": result.to_csv()}
for kind, text in tables.items():
    Path(f"results.{kind}").write_text(text)
