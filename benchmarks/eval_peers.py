"""Programs that print what `eval` computes of a parquet file, in polars and DuckDB.

An area is the share of pairs that scores order correctly, from the mean ranks of the positives
(Mann and Whitney) or from the counts of each score; grouped, the mean of the users' areas, weighted
by their rows. The peers give values alone; `eval` gives an interval of each as well.
"""

from __future__ import annotations

from typing import Final

_POLARS_AREA: Final = """
import sys
import polars as pl

rows = pl.scan_parquet(sys.argv[1])
p, n = pl.col("p"), pl.col("n")
area = (pl.col("ranks") - p * (p + 1) / 2) / (p * n)
parts = dict(
    ranks=pl.col("score").rank("average").filter(pl.col("label") == 1).sum(),
    p=pl.col("label").sum().cast(pl.Float64),
    n=(pl.col("label") == 0).sum().cast(pl.Float64),
)
"""
_POLARS: Final = {
    "AUC": _POLARS_AREA + "query = rows.select(**parts).select(area)",
    "log loss and click rate": """
import sys
import polars as pl

label = pl.col("label").cast(pl.Float64)
score = pl.col("score").cast(pl.Float64)
losses = -pl.when(pl.col("label") == 1).then(score.log()).otherwise((1 - score).log())
query = pl.scan_parquet(sys.argv[1]).select(loss=losses.mean(), rate=label.mean())
""",
    "GAUC": _POLARS_AREA
    + """
by_user = rows.group_by("user").agg(**parts).filter(p > 0, n > 0)
query = by_user.select(((p + n) * area).sum() / (p + n).sum())
""",
}
_PRINT_POLARS: Final = "\nprint(*query.collect().row(0))\n"

_DUCKDB: Final = {
    "AUC": """
with counts as (
    select score, sum(label)::double as p, sum(1 - label)::double as n from '{file}' group by score
), placed as (
    select p, n, coalesce(
        sum(n) over (order by score rows between unbounded preceding and 1 preceding), 0) as below
    from counts
)
select sum(p * (below + n / 2)) / (sum(p) * sum(n)) from placed
""",
    "log loss and click rate": """
select avg(-ln(case when label = 1 then score::double else 1 - score::double end)), avg(label)
from '{file}'
""",
    "GAUC": """
with counts as (
    select "user", score, sum(label)::double as p, sum(1 - label)::double as n
    from '{file}' group by "user", score
), placed as (
    select "user", p, n, coalesce(sum(n) over (
        partition by "user" order by score rows between unbounded preceding and 1 preceding), 0
    ) as below
    from counts
), areas as (
    select sum(p) as p, sum(n) as n, sum(p * (below + n / 2)) as wins from placed group by "user"
)
select sum((p + n) * wins / (p * n)) / sum(p + n) from areas where p > 0 and n > 0
""",
}
_RUN_DUCKDB: Final = """
import sys
import duckdb

duckdb.sql("set threads = 1")
print(*duckdb.sql({query!r}.replace("{{file}}", sys.argv[1])).fetchall()[0])
"""

PROGRAMS: Final = {
    "polars": {work: code + _PRINT_POLARS for work, code in _POLARS.items()},
    "duckdb": {work: _RUN_DUCKDB.format(query=query) for work, query in _DUCKDB.items()},
}
