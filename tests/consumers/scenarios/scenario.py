"""A scenario: an experiment with a story, run through the consumer, and what is said of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from streammetrics_consumers.cli.main import main

from tests.consumers.small_config import head

DAY_MS: Final = 86_400_000
START_MS: Final = 1_764_547_200_000  # 2025-12-01T00:00:00Z
CONFIG: Final = (
    head("events.jsonl", "{variants}", 'time_unit = "ms"\n{event}', 86_400)
    + """\
[metrics]
{metrics}
[experiment]
control = "old"
{experiment}
"""
)

Event = Mapping[str, object]
Day = Callable[[Random, int], Iterator[Event]]
Value = Callable[[Random], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """story: what happens, as a product manager would tell it. days: the number of days, each of
    which ends with a look; day: the events of a day. metrics, experiment, event: of the config."""

    story: str
    metrics: str
    experiment: str
    days: int
    day: Day
    variants: tuple[str, ...] = ("old", "new")
    event: str = ""

    def text(self, folder: Path) -> str:
        """Run the scenario in an empty folder; the recommendation, the sentences and the notes."""
        config, log = folder / "experiment.toml", folder / "events.jsonl"
        parts = {name: getattr(self, name) for name in ("metrics", "experiment", "event")}
        config.write_text(
            CONFIG.format(variants=json.dumps(list(self.variants)), **parts), encoding="utf-8"
        )
        random = Random(self.story)
        for day in range(self.days):
            events = [*self.day(random, day)]
            random.shuffle(events)
            with log.open("a", encoding="utf-8") as file:
                for i, event in enumerate(events):
                    ts = START_MS + day * DAY_MS + (i * DAY_MS) // len(events)
                    file.write(json.dumps({"ts": ts, **event}) + "\n")
            assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
        answer = io.BytesIO()
        with redirect_stdout(io.TextIOWrapper(answer, write_through=True)):
            assert main(["results", str(folder / "store.db"), "--json"]) == 0
            return _text_of(json.loads(answer.getvalue()))


def _text_of(results: Mapping[str, object]) -> str:
    """The sentences of an answer, a paragraph each."""
    recommendation, comparisons = results["recommendation"], results["comparisons"]
    notes = results["notes"]
    assert isinstance(recommendation, dict)
    assert isinstance(comparisons, list)
    assert isinstance(notes, list)
    lines = [f"**{recommendation['sentence']}**"]
    lines += [
        f"- {comparison['verdict']}: {comparison['sentence']}"
        for comparison in comparisons
        if comparison["window"]["state"] == "total"
    ]
    return "\n".join([*lines, *(f"- note: {note}" for note in notes)])


def visits(
    arm: str,
    users: int,
    *,
    day: int = 0,
    rows: int = 1,
    is_returning: bool = False,
    **values: Value,
) -> Callable[[Random], Iterator[Event]]:
    """The events of an arm on a day: `rows` of each user, with the values drawn for each.

    is_returning: whether the users are those of every other day, and not new ones.
    """

    def drawn(random: Random) -> Iterator[Event]:
        for i in range(users):
            user = f"{arm}-{i}" if is_returning else f"{arm}-{day}-{i}"
            for _ in range(rows):
                drawn_values = {name: value(random) for name, value in values.items()}
                yield {"variant": arm, "user": user, **drawn_values}

    return drawn


def rate(share: float) -> Value:
    """1 with this probability, else 0."""
    return lambda random: int(random.random() < share)


def amount(share: float, mu: float, sigma: float) -> Value:
    """An amount of a buyer, lognormal and rounded to cents, and 0 of others."""

    def value(random: Random) -> float:
        return round(random.lognormvariate(mu, sigma), 2) if random.random() < share else 0.0

    return value


def normal(mean: float, sigma: float) -> Value:
    """A normal value, rounded to three decimals."""
    return lambda random: round(random.gauss(mean, sigma), 3)
