import polars as pl

from streammetrics import Moments, PerKey, UnitMean, compare

orders = pl.read_csv("orders.csv")  # variant, user, amount: users have many rows
per_user, amounts = PerKey(UnitMean()), PerKey(Moments())
per_user.update_from(orders, key="variant", units="user", values="amount")
users = orders.group_by("variant", "user").agg(pl.col("amount").sum())  # the long way
amounts.update_from(users, key="variant", values="amount")
found = compare(per_user.state("control"), per_user.state("new"))
welch = compare(amounts.state("control"), amounts.state("new"))
print(found, welch, sep="\n")
