"""Stores of experiments with names, for the pictures and the tests of the page: one experiment,
twenty, and fifty metrics; all of one stream, in which each user has an arm of each experiment.

Of the twenty one should be shipped; two should be stopped, for a broken guardrail and for a loss;
the units of one are not split as planned; one ended, one is archived, two have too few events or
none, and the others run on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main

DAY_MS: Final = 86_400_000
START_MS: Final = 20_000 * DAY_MS  # 2024-10-04
DAYS: Final = 8
USERS: Final = 300  # of a day
CONTROL: Final = "control"


@dataclass(frozen=True, slots=True)
class Declared:
    """An experiment: its treatments, each with what it adds to the probabilities of a click and of
    an error; weights: of its arms in the stream; more: further lines of its config."""

    arms: Mapping[str, tuple[float, float]]
    title: str = ""
    hypothesis: str = ""
    days: int | None = 14
    weights: Sequence[int] = (1, 1)
    more: str = ""


TWENTY: Final[Mapping[str, Declared]] = {
    "feed_order": Declared({"mixed": (0.01, 0)}),
    "ranker": Declared(
        {"v7": (0.13, 0)},
        "New ranker in search",
        "Ranking by the new model raises the click rate.",
        days=7,
    ),
    "thumbnails": Declared({"large": (-0.01, 0)}, "Larger thumbnails"),
    "checkout": Declared(
        {"one_page": (0.03, 0.16)},
        "Checkout on one page",
        "Fewer steps lose fewer buyers, at the same errors.",
    ),
    "sidebar": Declared({"left": (-0.02, 0)}, days=None),
    "search_prefix": Declared(
        {"prefix": (0.02, 0)}, "Suggestions from the first letter", weights=(5, 2)
    ),
    "home_layout": Declared(
        {"grid": (0.03, 0), "list": (-0.02, 0), "short": (0.01, 0)},
        "Layout of the home page",
        weights=(1, 1, 1, 1),
    ),
    "push_time": Declared({"evening": (0.04, 0)}, "Pushes in the evening", days=28),
    "pricing": Declared({"high": (-0.14, 0)}, "Higher prices", "Higher prices lose few buyers."),
    "badges": Declared({"gold": (0, 0)}, "Badges for regulars", more='where = { page = "me" }'),
    "onboarding": Declared({"short": (0.02, 0)}, "Shorter onboarding", days=7),
    "video_preview": Declared({"mute": (0, 0), "loud": (-0.04, 0)}, weights=(1, 1, 1)),
    "new_logo": Declared({"blue": (0, 0)}, "New logo", more="start = 2024-12-01T00:00:00Z"),
    "cart_reminder": Declared({"mail": (0.03, 0)}, "Reminder of a full cart", days=21),
    "filters": Declared({"above": (0, 0)}, "Filters above the results"),
    "dark_mode": Declared({"dark": (0.01, 0)}, days=None),
    "reviews": Declared({"first": (-0.01, 0)}, "Reviews before the price"),
    "loyalty": Declared({"points": (0.02, 0)}, "Points for each order"),
    "legacy_cart": Declared(
        {"new": (-0.04, 0)}, "The former cart", more="end = 2024-10-09T00:00:00Z"
    ),
    "first_banner": Declared(
        {"wide": (0.01, 0)},
        "Banner of last autumn",
        more="archived = true\nend = 2024-10-10T00:00:00Z",
    ),
}
ONE: Final = {"ranker": TWENTY["ranker"]}
TWO: Final = {**ONE, "home_layout": TWENTY["home_layout"]}
THREE: Final = {
    "ctr": 'type = "Ratio", better = "higher", inputs = { numerators = "click" }',
    "errors": 'type = "Ratio", better = "lower", inputs = { numerators = "error" }',
    "auc": 'type = "HistogramAUC"',
}
FIFTY: Final = {**THREE, **{f"ctr_{i:02d}": THREE["ctr"] for i in range(4, 51)}}
HEAD: Final = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
time_unit = "ms"
user = "user"
label = "click"
score = "score"
assignments = "exps"
[windows]
size_s = 86_400
[slices]
by = [[]]
[store]
url = "store.db"
[server]
port = 0
"""


def events(experiments: Mapping[str, Declared], day: int) -> Iterator[dict[str, object]]:
    """The events of a day: one of each user."""
    chance = random.Random(day)
    for i in range(USERS):
        click, error = 0.25, 0.02
        arms: dict[str, str] = {}
        for name, declared in experiments.items():
            [arm] = chance.choices([CONTROL, *declared.arms], declared.weights)
            arms[name] = arm
            more_clicks, more_errors = declared.arms.get(arm, (0, 0))
            click, error = click + more_clicks, error + more_errors
        yield {
            "ts": START_MS + day * DAY_MS + 100_000 * i,
            "user": f"{day}-{i}",
            "exps": arms,
            "page": "me" if i % 50 == 0 else "shop",
            "click": int(chance.random() < click),
            "error": int(chance.random() < error),
            "score": round(chance.random(), 3),
        }


def make_store(
    experiments: Mapping[str, Declared], metrics: Mapping[str, str], looks: int, folder: Path
) -> Path:
    """A store of these experiments after eight days, with a look at the end of each of the last."""
    config = write(experiments, metrics, folder)
    for day in range(DAYS):
        count(experiments, day, folder)
        if day >= DAYS - looks:
            assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"


def count(experiments: Mapping[str, Declared], day: int, folder: Path) -> None:
    """Add the events of a day to the file that is counted."""
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in events(experiments, day))


def write(experiments: Mapping[str, Declared], metrics: Mapping[str, str], folder: Path) -> Path:
    """The config of these experiments."""
    rails = ("errors", *list(metrics)[3:9])
    lines = [HEAD, "[metrics]", *(f"{name} = {{ {kind} }}" for name, kind in metrics.items())]
    for name, declared in experiments.items():
        keys: dict[str, object] = {
            "control": CONTROL,
            "variants": [CONTROL, *declared.arms],
            "unit": "user",
            "decision": ["ctr"],
            "metrics": [metric for metric in metrics if metric not in ("ctr", *rails)],
            "horizon": 3000,
            "baseline": 0.25,
        }
        texts = {"name": declared.title, "hypothesis": declared.hypothesis, "days": declared.days}
        keys |= {key: value for key, value in texts.items() if value}
        guardrails = ", ".join(f'{{ metric = "{rail}", margin = 0.07 }}' for rail in rails)
        lines += [
            f"[experiments.{name}]",
            *(f"{key} = {json.dumps(value)}" for key, value in keys.items()),
            f"guardrails = [{guardrails}]",
            "" if "start = " in declared.more else "start = 2024-10-04T00:00:00Z",
            declared.more,
        ]
    path = folder / "config.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


EXPERIMENT_SCENES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "one_experiment": partial(make_store, ONE, THREE, DAYS),
    "twenty_experiments": partial(make_store, TWENTY, THREE, DAYS),
    "two_experiments": partial(make_store, TWO, FIFTY, 2),
}
