import polars as pl

from streammetrics.experiments import SampleRatio

users = pl.read_csv("users.csv")
counts = dict(users.group_by("variant").len().iter_rows())
found = SampleRatio({"control": 1, "new": 1}).at(counts)  # planned half and half
print(found)
print("a sample ratio mismatch" if found.alarm else "no alarm", found.pvalue, found.e_value)
