"""The configs of `demo`: three experiments in one stream, one with labels that come later, and five
whose users are exposed."""

from __future__ import annotations

from typing import Final

LABEL_WINDOW_S: Final = 1800
EXPERIMENTS_CONFIG: Final = """\
# Three experiments in one stream. It is simulated: a request shows a list of ten items to a user,
# an event is an item of it, and the label is whether it was clicked. A user is in an arm of each
# experiment, by a hash with a salt of the experiment.
#     streammetrics simulate --experiments --items 10 --events 200000 -o events.jsonl
#     streammetrics run demo.toml
[source]
kind = "file"
path = "events.jsonl"

[event]
time = "ts"
user = "user"
list = "list"
label = "label"
score = "score"
# The arms of the user: "experiments": {"ranker": "new", "autoplay": "off", "placebo": "a"}
assignments = "experiments"

[windows]
size_s = 86400

[slices]
by = [[], ["segment"]]

[metrics]
ctr = { type = "Ratio", better = "higher", cluster = "groups" }
auc = { type = "HistogramAUC", cluster = "groups" }
auc_within_users = { type = "GroupedAUC" }
ranking = { type = "GroupedScores", measures = ["NDCG@10", "MRR", "HR@3"] }
"confusion_at_0.2" = { type = "BinaryConfusion", threshold = 0.2, cluster = "groups" }

# The share of requests after which the user leaves; each is counted at its first item.
[metrics.bounce_rate]
type = "Ratio"
inputs = { numerators = "bounced" }
where = "position == 1"
better = "lower"
cluster = "groups"

# Declared before the data: what decides, what must not get worse, and the least differences that
# matter. The unit is [event] user.
[experiments.ranker]
name = "A new ranker"
hypothesis = "A score that follows the clicks more closely brings more clicks."
variants = ["control", "new"]
control = "control"
decision = ["ctr", "ranking.NDCG@10"]
guardrails = [{ metric = "bounce_rate", margin = 0.03 }]
metrics = ["auc"]
mdes = { ctr = 0.005, "ranking.NDCG@10" = 0.03, bounce_rate = 0.03 }
days = 14
look_every_s = 10

[experiments.autoplay]
name = "Videos that play by themselves"
hypothesis = "A video that plays by itself is clicked more often."
variants = ["off", "on"]
control = "off"
decision = ["ctr"]
guardrails = [{ metric = "bounce_rate", margin = 0.03 }]
mdes = { ctr = 0.005, bounce_rate = 0.03 }
days = 14
look_every_s = 10

[experiments.placebo]
name = "An A/A test"
hypothesis = "Both arms are the same, so nothing may be found."
variants = ["a", "b"]
control = "a"
decision = ["ctr"]
mdes = { ctr = 0.005 }
days = 14
look_every_s = 10

[store]
url = "demo.db"
commit_interval_s = 1
"""
JOINED_CONFIG: Final = f"""\
# An A/B test of two rankers. The stream is simulated: each request shows a list of ten items to a
# user. Each item shown is an event, and so are clicks and purchases, which come later.
#     streammetrics simulate --join --items 10 --events 200000 -o events.jsonl
#     streammetrics run demo.toml
[source]
kind = "file"
path = "events.jsonl"

[event]
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
list = "list"
score = "score"

[join]
id = "request_id"
impression = {{ field = "kind", equals = "impression" }}
label_window_s = {LABEL_WINDOW_S}

[join.outcomes]
click = {{ field = "kind", equals = "click" }}
revenue = {{ field = "kind", equals = "purchase", counts = "sum", value = "amount" }}

[windows]
size_s = 21600

[slices]
by = [[], ["variant"], ["segment"], ["variant", "segment"]]

[metrics]
click_rate = {{ type = "Ratio", better = "higher", cluster = "groups" }}
revenue = {{ type = "UnitMean", inputs = {{ values = "revenue" }} }}
auc = {{ type = "HistogramAUC", cluster = "groups" }}
auc_within_users = {{ type = "GroupedAUC" }}
ranking = {{ type = "GroupedScores", measures = ["NDCG@10", "MRR", "HR@3"] }}
"confusion_at_0.05" = {{ type = "BinaryConfusion", threshold = 0.05, cluster = "groups" }}

# Declared before the data: what decides, what must not get worse, and the least differences that
# matter. The unit is [event] user.
[experiment]
name = "A new ranker"
hypothesis = "A score that follows the clicks more closely brings more clicks."
control = "control"
decision = ["click_rate"]
guardrails = [{{ metric = "auc", margin = 0.01 }}]
mdes = {{ click_rate = 0.002, auc = 0.02 }}
look_every_s = 10

[store]
url = "demo.db"
commit_interval_s = 1
"""
EXPOSURES_CONFIG: Final = """\
# Five experiments of a company. It is simulated: the site logs which arm of which experiment a user
# sees, and clicks; the shop purchases, and the app crashes, without any arm.
#     streammetrics simulate --exposures --n-users 12500 --events 200000 -o events.jsonl
#     streammetrics run demo.toml
[source]
kind = "file"
path = "events.jsonl"

[event]
time = "ts"
user = "user"

# Who was shown what. An event of a user belongs to the arm that the user was shown before, if it
# comes within a week.
[exposures]
field = "kind"
equals = "exposure"
experiment = "experiment"
arm = "arm"
window_s = 604_800

[columns]
is_click = "kind == 'click'"
is_purchase = "kind == 'purchase'"
is_crash = "kind == 'crash'"

[windows]
size_s = 86400

[slices]
by = [[]]

# Of users: all who were exposed count, also those who did nothing.
[metrics.revenue]
type = "UnitMean"
inputs = { values = "amount" }
where = "is_purchase"
better = "higher"

[metrics]
conversion = { type = "UnitRate", inputs = { values = "is_purchase" }, better = "higher" }
clicks = { type = "UnitMean", inputs = { values = "is_click" }, better = "higher" }
crashed = { type = "UnitRate", inputs = { values = "is_crash" }, better = "lower" }

# Declared before the data: what decides, what must not get worse, and the least differences that
# matter.
[experiments.checkout]
name = "A checkout of one page"
hypothesis = "Fewer steps bring more purchases."
variants = ["old", "new"]
control = "old"
decision = ["revenue"]
guardrails = [{ metric = "crashed", margin = 0.02 }]
metrics = ["conversion"]
mdes = { revenue = 2.0, crashed = 0.02 }
start = 2024-01-01T00:00:00Z
days = 14
look_every_s = 10

[experiments.feed]
name = "A feed that goes on"
hypothesis = "A feed without an end is clicked more."
variants = ["old", "new"]
control = "old"
decision = ["clicks"]
guardrails = [{ metric = "crashed", margin = 0.02 }]
mdes = { clicks = 0.5, crashed = 0.02 }
start = 2024-01-01T00:00:00Z
days = 14
look_every_s = 10

[experiments.placebo]
name = "An A/A test"
hypothesis = "Both arms are the same, so nothing may be found."
variants = ["a", "b"]
control = "a"
decision = ["revenue"]
mdes = { revenue = 2.0 }
start = 2024-01-01T00:00:00Z
days = 14
look_every_s = 10

[experiments.pricing]
name = "Lower prices for one user in twenty"
hypothesis = "Lower prices bring more purchases than they cost."
variants = ["usual", "low"]
control = "usual"
shares = { usual = 0.95, low = 0.05 }
decision = ["revenue"]
mdes = { revenue = 4.0 }
start = 2024-01-01T00:00:00Z
days = 14
look_every_s = 10

# Whoever buys later has not bought less: this one is decided by users whose week is over.
[experiments.delivery]
name = "Delivery on a day of choice"
hypothesis = "Users who choose the day buy no less, but may buy later."
variants = ["now", "later"]
control = "now"
units = "closed"
decision = ["revenue"]
mdes = { revenue = 2.0 }
start = 2024-01-01T00:00:00Z
days = 14
look_every_s = 10

[store]
url = "demo.db"
commit_interval_s = 1
"""
