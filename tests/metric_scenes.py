"""Stores whose config has every newer metric: values, drifts, alarms and effects of each kind."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main

from streammetrics import Quantiles
from tests.consumers.small_config import head

DAY_MS: Final = 86_400_000
START_MS: Final = 19_000 * DAY_MS
ITEMS: Final = 40
GENRES: Final = ("drama", "comedy", "crime", "nature")
CONFIG: Final = (
    head(
        "events.jsonl",
        '["control", "new_ranker"]',
        'time_unit = "ms"\nlabel = "label"\nscore = "score"',
        86_400,
        '[[], ["variant"], ["variant", "country"]]',
    )
    + """\
[metrics]
latency = {{ type = "Quantiles", better = "lower", inputs = {{ values = "latency" }} }}
wait = {{ type = "ExactQuantiles", inputs = {{ values = "wait" }} }}
spend = {{ type = "Moments", inputs = {{ values = "spend" }} }}
users_latency = {{ type = "Quantiles", cluster = "groups", inputs = {{ values = "latency" }} }}
auc = {{ type = "HistogramAUC" }}
policy = {{ type = "OffPolicy", reward_limit = 1, inputs = {{ \
logged = "p", target = "q", rewards = "label" }} }}
doubly_robust = {{ type = "OffPolicy", clip = 5, inputs = {{ logged = "p", target = "q", \
rewards = "label", predicted_logged = "guess", predicted_target = "guess_target" }} }}
thin_policy = {{ type = "OffPolicy", inputs = {{ \
logged = "tiny", target = "q", rewards = "label" }} }}
rankers = {{ type = "Interleaving", inputs = {{ clicks_a = "won.a", clicks_b = "won.b" }} }}
sessions = {{ type = "GroupedInterleaving", inputs = {{ teams = "team", groups = "session" }} }}
uplift = {{ type = "Uplift", treated_share = 0.5, inputs = {{ treated = "treated" }} }}
wrong_uplift = {{ type = "Uplift", treated_share = 0.25, inputs = {{ treated = "treated" }} }}
exact_uplift = {{ type = "ExactUplift", inputs = {{ treated = "treated" }} }}
lists = {{ type = "RankingMetrics", measures = ["AlphaNDCG@3", "ERRIA@3", "StRecall@3", "F1@3"], \
complete_lists = true, inputs = {{ labels = "grades", scores = "ranks", subtopics = "genres" }} }}
exposure = {{ type = "ItemExposure", n_items = 40, k = 5, inputs = {{ lists = "shown" }} }}
two_models = {{ type = "HistogramAUC", models = ["score", "other_score"] }}
[drift.latency_drift]
metric = "latency"
[drift.latency_since_launch]
metric = "latency"
reference = "2022-01-08/2022-01-09"
[drift.scores_of_positives]
metric = "auc"
label = 1
reference = "2022-01-08/2022-01-09"
[drift.saved_drift]
metric = "latency"
reference = "saved.state"
[drift.users_drift]
metric = "users_latency"
reference = "2022-01-08/2022-01-09"
{experiment}
"""
)
EXPERIMENT: Final = """
[experiment]
name = "Faster home page"
hypothesis = "Caching makes the slowest tenth of pages faster."
days = 14
control = "control"
unit = "user"
cluster = "{cluster}"
decision = {decision}
guardrails = [{{ metric = "auc", margin = 0.05 }}]
horizon = 8000
baseline = 0.25
mdes = {mdes}
"""


def events(days: int, a_day: int) -> Iterator[dict[str, object]]:
    """Events of users, who stay with their variant; latencies grow on the last day."""
    chance = random.Random(11)
    for day in range(days):
        for index in range(a_day):
            new, treated = index % 2, chance.random() < 0.5
            score = round(0.02 + 0.9 * chance.random() ** 2, 4)
            latency = chance.lognormvariate(4.5 + 0.3 * (day == days - 1) - 0.1 * new, 0.5)
            label = int(chance.random() < 0.1 + 0.3 * score + 0.1 * treated * score)
            shown = sorted(
                chance.sample(range(ITEMS), 5), key=lambda number: number * chance.random()
            )
            yield {
                "ts": START_MS + day * DAY_MS + 1000 * index,
                "variant": ("control", "new_ranker")[new],
                "user": f"u{(index // 2) % 700}-{new}",
                "country": ("NL", "DE", "PL")[index // 2 % 3],
                "label": label,
                "score": score,
                "other_score": round(min(1.0, score * chance.random() * 1.2), 4),
                "latency": round(latency, 3),
                "wait": float(chance.randrange(60)),
                "spend": round(chance.lognormvariate(1, 1), 2) if label else 0.0,
                "p": 0.5,
                "tiny": 0.001 if index % 400 == 0 else 1.0,
                "q": round(0.2 + 0.6 * chance.random(), 3),
                "guess": 0.2,
                "guess_target": round(0.2 + 0.1 * chance.random(), 3),
                "won": {"a": int(chance.random() < 0.3), "b": int(chance.random() < 0.35)},
                "team": int(chance.random() < 0.5),
                "session": f"s{day}-{index // 4}",
                "treated": int(treated),
                "grades": [int(chance.random() < 0.4) for _ in range(4)],
                "ranks": [round(chance.random(), 3) for _ in range(4)],
                "genres": [chance.sample(GENRES, chance.randrange(3)) for _ in range(4)],
                "shown": shown,
            }


def make_store(experiment: str, days: int, folder: Path) -> Path:
    """A store of every newer metric; without days it is empty."""
    lines = (json.dumps(event) for event in events(days, 1200))
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "config.toml").write_text(CONFIG.format(experiment=experiment), encoding="utf-8")
    saved = Quantiles()
    saved.update(list(range(1, 400)))
    (folder / "saved.state").write_bytes(saved.to_file_bytes())
    assert main(["run", str(folder / "config.toml"), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"


EXPERIMENT_OF_ROWS: Final = EXPERIMENT.format(
    cluster="none",
    decision='["latency.p90", "rankers", "spend.mean"]',
    mdes='{ "latency.p90" = 10, rankers = 0.02, "spend.mean" = 0.2 }',
)
EXPERIMENT_OF_USERS: Final = EXPERIMENT.format(
    cluster="groups",
    decision='["latency.p90", "policy.snips", "uplift.qini"]',
    mdes='{ "latency.p90" = 10, "policy.snips" = 0.02, "uplift.qini" = 0.02 }',
)
METRIC_SCENES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "metrics": partial(make_store, "", 3),
    "metrics-rows": partial(make_store, EXPERIMENT_OF_ROWS, 3),
    "metrics-users": partial(make_store, EXPERIMENT_OF_USERS, 3),
    "metrics-empty": partial(make_store, EXPERIMENT_OF_ROWS, 0),
}
