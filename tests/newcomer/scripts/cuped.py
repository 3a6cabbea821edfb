import polars as pl

from streammetrics import Ratio, UserGroups, compare
from streammetrics.experiments import Covariate, UserTotals

users = pl.read_csv("users.csv")  # variant, user, before, during


def arm(variant: str) -> tuple[UserGroups, UserGroups, UserTotals]:
    rows, before, during = users.filter(variant=variant), UserGroups(Ratio()), UserGroups(Ratio())
    before.update(rows["user"], numerators=rows["before"])
    during.update(rows["user"], numerators=rows["during"])
    return before, during, UserTotals.of(rows["before"], rows["during"])


(x, control, totals), (new_x, new, new_totals) = arm("control"), arm("new")
covariate = Covariate(control=x, treatment=new_x, users=(totals, new_totals))
plain, adjusted = compare(control, new), compare(control, new, covariate=covariate)
