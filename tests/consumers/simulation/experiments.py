"""A plot with experiments: a deployment adds one, ends it, resumes it, gives it an end, or archives
it, any number of times, while workers, retries, looks and the store go on as in every plot.

What each must have counted is worked out from the records alone, and looks at it from a store that
counts this experiment and no other: see `alone.py`.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.generations import counted_to_ms
from streammetrics_consumers.ledger.looks import claim
from streammetrics_consumers.ledger.read import last_retry
from streammetrics_consumers.model.generation import Generation, Metric, Requested, experiment_set
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.experiment_looks import look_now
from streammetrics_consumers.query.experiment_plan import declared

from streammetrics import PerKey, Ratio, Units, UserGroups
from tests.consumers.folded import (
    KNOWN_BROKEN,
    METRICS,
    SIZE_MS,
    Counted,
    State,
    fold,
    time_of,
)
from tests.consumers.simulation.alone import require_as_alone
from tests.consumers.simulation.plots import GROUPINGS, SLICES, WINDOWS, Known, Plain, iso
from tests.consumers.small_config import EVENT, config

if TYPE_CHECKING:
    from tests.consumers.simulation.interleaved import World

PLAN: Final = 'control = "a"\nvariants = ["a", "b"]\ndecision = ["ctr"]\nmde = 0.1\n'
BEGIN_MS, END_MS = 1_800_000, 5_400_000
KEYS: Final[Mapping[str, str]] = {
    "plain": "",
    "twin": "",  # only its name is another one
    "searches": 'where = { surface = "search" }\n',
    "bounded": f'start = "{iso(BEGIN_MS)}"\nend = "{iso(END_MS)}"\n',
    "late": "",
}
ACTIONS: Final = ("added", "ended", "resumed", "given an end", "archived")
Place = tuple[Partition, int]


class Edge(NamedTuple):
    """When an experiment began or ended: the next offset of each log, and the last retry."""

    stand: Mapping[Partition, int]
    retry: int


@dataclass
class Phase:
    """The offsets and the retries in which an experiment is counted."""

    since: Edge
    until: Edge | None = None

    def holds(self, partition: Partition, offset: int) -> bool:
        """Whether a record of the log is counted."""
        end = None if self.until is None else self.until.stand.get(partition, 0)
        return self.since.stand.get(partition, 0) <= offset and (end is None or offset < end)

    def holds_retry(self, retry: int) -> bool:
        """Whether events of a retry are counted."""
        return self.since.retry < retry and (self.until is None or retry <= self.until.retry)


@dataclass
class Course:
    """What has become of one experiment in this store."""

    phases: list[Phase] = field(default_factory=list)
    is_running: bool = True
    is_archived: bool = False
    end_ms: int | None = None


class Experiments(Plain):
    """See the module."""

    hours = 2

    def __init__(self, rng: random.Random, size: int) -> None:
        super().__init__(rng, size)
        for log in self.logs.values():
            log.values = [_with_arms(rng, value) for value in log.values]
        self.rng = rng
        self.courses = {"plain": Course()}
        self.now_ms = count(1000, 1000)

    @property
    def before(self) -> Config:  # type: ignore[override]
        """The config as it is now."""
        entries = [
            entry(name, course.is_archived, course.end_ms)
            for name, course in self.courses.items()
            if course.is_running
        ]
        return make_config(tuple(entries))

    # -- what happens -------------------------------------------------------------------------
    def plan(self, rng: random.Random, steps: int) -> None:
        """Deployments come at any step."""

    def happen(self, world: World, step: int) -> None:
        """There may be a deployment, and a look at an experiment."""
        if self.rng.random() < 0.5:
            self.deploy(world)
        if self.rng.random() < 0.7:
            self.look(world, self.rng.choice(sorted(self.courses)))

    def deploy(self, world: World) -> None:
        """Change one thing of one experiment."""
        edge = Edge(world.stand(), world.ledger.store.read(
            lambda connection: last_retry(connection, world.generation.id)[0]
        ))  # fmt: skip
        possible = [(name, action) for name in KEYS for action in self.possible(name, world, edge)]
        name, action = self.rng.choice(possible)
        requested = Requested()
        if action == "added":
            self.courses[name] = Course([Phase(edge)])
        course = self.courses[name]
        if action == "ended":
            course.is_running, course.phases[-1].until = False, edge
            requested = Requested(drop=(experiment_set(name),))
        elif action == "resumed":
            course.is_running = True
            course.phases.append(Phase(edge))
            requested = Requested(resume=(experiment_set(name),))
        elif action == "given an end":
            course.end_ms = self.counted_ms(world) + self.rng.randrange(1, 1_800_000)
        elif action == "archived":
            course.is_archived = not course.is_archived
        world.seen[action] += 1
        world.deploy(self.before, requested)

    def possible(self, name: str, world: World, edge: Edge) -> list[str]:
        """What a deployment may do to an experiment now."""
        course = self.courses.get(name)
        if course is None:
            return ["added"]
        if not course.is_running:
            last = course.phases[-1].until if course.phases else None
            has_events = last is None or last.stand != edge.stand  # between its end and now
            return ["resumed"] * has_events
        has_none = name != "bounded" and course.end_ms is None and self.counted_ms(world) > 0
        return ["ended", "archived", *["given an end"] * has_none]

    def counted_ms(self, world: World) -> int:
        """A time that no counted event is later than; 0 where there is none."""
        return world.ledger.store.read(
            lambda connection: counted_to_ms(connection, world.generation.id) or 0
        )

    def look(self, world: World, name: str) -> None:
        """Look at an experiment as a worker does it."""
        experiment = declared(world.ledger.generation(world.generation.id), name)
        if experiment is None or experiment.ended:
            return
        now_ms, store = next(self.now_ms), world.ledger.store
        is_due = claim(
            store,
            world.generation.id,
            experiment.fingerprint,
            now_ms=now_ms,
            every_ms=1,
            last=False,
        )
        assert is_due
        world.seen[f"look at {name}"] += look_now(world.ledger, world.generation.id, now_ms, name)

    def counted_from_here(self, world: World) -> Known:
        """Those that run are counted from the beginning of each log, and the others not at all."""
        stored = {metric.metric_set for metric in world.ledger.generation().metrics}
        self.courses = {
            name: replace(course, phases=[Phase(Edge({}, 0))] if course.is_running else [])
            for name, course in self.courses.items()
            if experiment_set(name) in stored
        }
        return Known()

    # -- what must come of it -----------------------------------------------------------------
    def known_at_last(self, world: World, counts: Counted) -> Known:
        """Which retry has counted an event, and the holes of metrics, are known from the store."""
        entries = world.ledger.quarantine(is_done=True, limit=100_000)
        retried = {(e.partition, e.offset): e.retry for e in entries if e.retry is not None}
        return Known(retried=retried, metrics=by_log(world.ledger.generation(), world))

    def expected(self, knowledge: Known) -> Counted:
        plain = fold(self.logs, groupings=GROUPINGS, metrics=METRICS, ahead=self.ahead)
        return replace(plain, states={**plain.states, **dict(self.states(knowledge))})

    def states(self, knowledge: Known) -> Iterator[tuple[State, bytes]]:
        """The states of all experiments, from the records alone."""
        for name, course in self.courses.items():
            rows: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
            for place, row in self.rows():
                if not is_own(name, course, row) or not self.is_counted(
                    name, course, place, knowledge
                ):
                    continue
                at_ms = time_of(row)
                for start in (None, at_ms // SIZE_MS * SIZE_MS):
                    rows[start].append(row)
            for start, window_rows in rows.items():
                arms = (row["exps"][name] for row in window_rows)
                keys = [(0, "start", arm if arm in ("a", "b") else None) for arm in arms]
                users = [row["user"] for row in window_rows]
                ctr = PerKey(UserGroups(Ratio()), 10_000)
                ctr.update(keys, groups=users, numerators=[row["label"] for row in window_rows])
                units = PerKey(Units(max_units=1_000_000), 10_000)
                units.update(keys, units=users)
                prefix = experiment_set(name)
                yield (f"{prefix}/ctr", 0, start), ctr.to_bytes()
                yield (f"{prefix}/units", 0, start), units.to_bytes()

    def rows(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """All good events, with their places."""
        for partition, log in self.logs.items():
            for offset, value in zip(log.offsets, log.values, strict=True):
                if value is not None and value not in KNOWN_BROKEN:
                    yield (partition, offset), json.loads(value)

    def is_counted(self, name: str, course: Course, place: Place, knowledge: Known) -> bool:
        """Whether an event was counted while the experiment was: by a worker, or by a retry."""
        partition, offset = place
        if offset not in self.ahead[partition]:
            return any(phase.holds(partition, offset) for phase in course.phases)
        retry = knowledge.retried.get(place)
        if retry is None or not any(phase.holds_retry(retry) for phase in course.phases):
            return False
        metric = knowledge.metrics[f"{experiment_set(name)}/ctr"]
        holes = metric.holes.get(partition.number, ())
        since = course.phases[0].since.stand.get(partition, 0)
        return since <= offset and not any(start <= offset < end for start, end in holes)

    def compare(self, world: World) -> None:
        """States and looks are those of each experiment alone."""
        path = Path(world.ledger.store.name).with_name("alone.db")
        for name, course in self.courses.items():
            configs = (
                make_config(()),
                make_config((entry(name, course.is_archived, course.end_ms),)),
            )
            looks = require_as_alone(world.ledger, path, name, course, self.logs, configs)
            world.seen["compared looks"] += looks


def by_log(generation: Generation, world: World) -> dict[str, Metric]:
    """The metrics by name, with their holes by the number of the log."""
    numbers = {head.id: head.partition.number for head in world.ledger.heads(generation)}
    return {
        metric.name: replace(metric, holes={
            numbers[head]: holes for head, holes in metric.holes.items() if head in numbers
        })
        for metric in generation.metrics
    }  # fmt: skip


def is_own(name: str, course: Course, row: Mapping[str, Any]) -> bool:
    """Whether an event is one of an experiment."""
    at_ms = time_of(row)
    if name == "searches" and row["surface"] != "search":
        return False
    if name == "bounded" and not BOUNDS[0] <= at_ms < BOUNDS[1]:
        return False
    return name in row["exps"] and (course.end_ms is None or at_ms < course.end_ms)


BOUNDS: Final = tuple(time_of({"ts": iso(ms)}) for ms in (BEGIN_MS, END_MS))


def entry(name: str, is_archived: bool, end_ms: int | None) -> str:
    """The entry of [experiments] of one."""
    text = f"[experiments.{name}]\n{PLAN}{KEYS[name]}" + "archived = true\n" * is_archived
    if end_ms is None:
        return text
    after_ms = end_ms - time_of({"ts": iso(0)})
    return f'{text}end = "{iso(after_ms)}"\n'


@cache
def make_config(entries: tuple[str, ...]) -> Config:
    """The config with these experiments."""
    return config(
        event=f'{EVENT}assignments = "exps"\n',
        windows=WINDOWS.replace("retention_s = 3600", "retention_s = 864000"),
        slices=SLICES,
        metrics='auc = { type = "HistogramAUC" }\nctr = { type = "Ratio", better = "higher" }',
        rest="\n".join(entries),
    )


def _with_arms(rng: random.Random, value: bytes | None) -> bytes | None:
    if value is None or value in KNOWN_BROKEN:
        return value
    fields = {
        "user": f"u{rng.randrange(12)}",
        "exps": {name: rng.choice("aabbc") for name in KEYS if rng.random() < 0.9},
        "surface": rng.choice(["search", "home"]),
    }
    return json.dumps({**json.loads(value), **fields}).encode()
