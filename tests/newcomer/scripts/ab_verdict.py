import polars as pl

from streammetrics import PerKey, Ratio, UserGroups
from streammetrics.experiments import Experiment, Horizon, Plan

rate = PerKey(UserGroups(Ratio()))
rate.update_from(pl.read_parquet("day.parquet"), key="variant", groups="user", numerators="click")
states = {name: {"ctr": rate.state(name)} for name in ("control", "new")}
horizon, better = Horizon(mde=0.05), {"ctr": "higher"}
plan = Plan(
    control="control", variants=tuple(states), decision=("ctr",), better=better, horizon=horizon
)
report = Experiment(plan, states).report()
print(report)
