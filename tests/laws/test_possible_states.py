"""States that decode can exist: altered bytes, with a checksum that is right,
are refused, or give a result that can be shown whole.

Numbers in a state depend on each other: rows and sums, sums and sums of squares, pairs and areas. A
state whose numbers contradict each other must not reach a result, where it would be an error that
names neither the file nor the cause.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    Calibration,
    DictionaryColumn,
    Exposed,
    ExposedRows,
    GroupedAUC,
    IntraListSimilarity,
    Joined,
    JoinRows,
    MulticlassConfusion,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    StateError,
    Units,
    load,
)
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.results import counts_of, figure_of, kinds_of, texts_of, views_of
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import classes_first, tries
from tests.laws.test_hostile_bytes import FIRST, framed, opened, small_state

pytestmark = pytest.mark.xdist_group("hostile")  # with the states of test_hostile_bytes.py

TRIES = tries(6, 600)
FEW = tries(3, 600)  # of further cases of a class
_LARGE = (b"\x04\xff\xff\xff\x7f", b"\x08" + (2**62).to_bytes(8, "little"), b"\xff\xff\xff\x07")


def altered(body: bytes, other_body: bytes, random: Random) -> bytes:
    """A body with a few bytes changed, or a part of another state of the same metric in it."""
    data = bytearray(body)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        index = random.randrange(len(data) + 1)
        match random.randrange(6):
            case 0 | 1 if index < len(data):
                data[index] = random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))
            case 2 if index < len(data):
                data[index] = (data[index] + random.choice((-1, 1))) % 256
            case 3:
                data[index : index + random.randrange(9)] = random.choice(_LARGE)
            case 4:
                start = random.randrange(len(other_body) + 1)
                part = other_body[start : start + random.randrange(20)]
                data[index : index + len(part)] = part
            case _:
                end = min(len(data), index + random.randrange(1, 9))
                data[index:end] = data[index:end][::-1]
    return bytes(data)


def show(result: object) -> None:
    """All that a page, a report, a notebook or the command line ask of a result."""
    repr(result)
    for part in parts(result):
        views, _, _ = views_of(part), counts_of(part), texts_of(part)
        interval = getattr(part, "interval", None)
        for view in views if callable(interval) else ():
            interval(view)
        for kind in kinds_of(part):
            figure_of(part, kind)
    html = getattr(result, "_repr_html_", None)
    if callable(html):
        html()


def parts(result: object) -> Iterator[object]:
    """A result and those within it, the first of them."""
    yield result
    if isinstance(result, Mapping):
        for part, _ in zip(result.values(), range(8), strict=False):
            yield from parts(part)
    total = getattr(result, "total", None)
    if total is not None and not isinstance(total, float | int):
        yield from parts(total)


@pytest.mark.parametrize("case", classes_first(CASES), ids=str)
def test_altered_bytes_are_refused_or_give_a_result_that_can_be_shown(case: Case[Any]) -> None:
    random = Random(str(case))
    states = [small_state(case, rows) for rows in (1, 7, 25)]
    bodies = [opened(state) for state in states]
    for _ in range(TRIES if case in FIRST else FEW):
        head, body = random.choice(bodies)
        data = framed(head, altered(body, random.choice(bodies)[1], random))
        try:
            state = load(data)
        except StateError:
            continue
        assert state.to_bytes() == data
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            show(state.compute())


def _with_values(state: Any, part: str, *values: float) -> Any:
    """The state with some values more in one of its sums, and in nothing else."""
    vars(state)[part].add(np.array(values))
    return state


def _regression() -> Regression:
    state = Regression()
    state.update([3, -0.5, 2], [2.5, 0, 1e200])
    return state


def _plain() -> Regression:
    state = Regression()
    state.update([3, 1, 2], [2.5, 3, 2])
    state.compute()
    return state


def _cubes_of_hits(value: float) -> RankingMetrics:
    state = RankingMetrics(("HR@1", "PooledHR@1"), complete_lists=True)
    state.update([[1, 0]], [[0.5, 0.25]])
    state.compute()
    state.cubes.sums[1 if value < 0 else 0][-1].add(np.array([value]))
    return state


def _right() -> Regression:
    state = Regression()
    state.update([1, 2], [1, 2])
    return state


def _ratio() -> Ratio:
    state = Ratio()
    state.update([0, 1, 1])
    state.compute()
    return state


def _calibration() -> Calibration:
    state = Calibration(bins=2)
    state.update([0, 1, 1], [0.25, 0.5, 0.75])
    state.compute()
    return state


def _by_mass(bucket: int, row: int, score: float) -> Calibration:
    """A state of three rows with one more in a bucket alone, or a score more."""
    state = Calibration(bins=2, grid="relative", resolution=0)
    state.update([0, 1, 1], [0.25, 0.5, 0.75])
    state.compute()
    state.by_score.add(np.array([bucket]), None, np.array([row]))
    state.sums_by_score.add(np.array([score, -score]), np.array([bucket, bucket - 1]))
    return state


def _ranks() -> MulticlassConfusion:
    state = MulticlassConfusion(3, (1, 2))
    state.update([0, 1], [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    state.compute()
    state.first.add(np.array([5]))
    return state


def _similarity(amount: float = 2.0) -> IntraListSimilarity:
    state = IntraListSimilarity([[1, 0], [3, 4]])
    state.update([[0, 1]])
    return _with_values(state, "sums", amount)


def _hits() -> RankingMetrics:
    state = RankingMetrics(("HR@1",))
    state.update([[1, 0]], [[0.5, 0.25]])
    state.compute()
    state.moments.sums[0][0].add(np.array([3.0]))
    state.moments.sums[0][1].add(np.array([3.0]))
    return state


def _rounded() -> GroupedAUC:
    state = GroupedAUC(round_weights=True)
    state.update([0, 1], [0.5, 0.5], groups=[0, 0], weights=[0.3, 1])
    state.compute()
    scores, zero = np.ones(1, np.float32), np.zeros(1, np.intp)
    state.rounded.add(scores, zero.astype(np.uint8), zero, groups=np.zeros(1, np.int64))
    return state


def _joined(part: str, value: int) -> Joined:
    state = Joined(Ratio(), {}, {"click": "once"}, 60_000, inputs={"numerators": "click"})
    state.update(["impression", "click"], [1, 1], [0, 1])
    vars(state)[part].add(np.array([value]))
    return state


def _outcomes() -> JoinRows:
    state = JoinRows({}, {"click": "once", "sale": "once"}, 60_000)
    state.update(["sale"], [1], [0])
    data = state.outcome_rows.sets[0].settled().fields[0]
    data[:] = 2
    return state


def _exposed(part: str, value: int) -> Exposed:
    state = Exposed(Units(), {})
    state.update([1, 1], [0, 1], ["new", None])
    vars(state)[part].add(np.array([value]))
    return state


def _nameless(part: str) -> ExposedRows:
    state = ExposedRows({})
    arms = DictionaryColumn(np.zeros(1, np.intp), (None,))
    vars(state)[part].add(np.ones(1, np.uint64), np.zeros(1, np.int64), (arms, arms))
    return state


IMPOSSIBLE: dict[str, Callable[[], Accumulator]] = {
    "Regression, an error below 0": lambda: _with_values(_regression(), "absolute", -1e201),
    "Regression, errors above their squares": lambda: _with_values(
        _regression(), "absolute", 1e201
    ),
    "Regression, an error of -inf": lambda: _with_values(_regression(), "absolute", -np.inf),
    "Regression, labels above their squares": lambda: _with_values(_regression(), "labels", 1e3),
    "Regression, squares below 0": lambda: _with_values(_regression(), "label_squares", -1e3),
    "Regression, squared errors below 0": lambda: _with_values(_right(), "products", 1.0),
    "Regression, products above the squares": lambda: _with_values(
        _regression(), "products", 1e208
    ),
    "Regression, an infinite label": lambda: _with_values(_regression(), "labels", np.inf),
    "Regression, errors without rows": lambda: _with_values(Regression(), "score_squares", 1.0),
    "Regression, cubes below 0": lambda: _with_values(_regression(), "cubes", -1e300),
    "Regression, cubes above their squares": lambda: _with_values(_plain(), "cubes", 1.0),
    "Regression, squares above their cubes": lambda: _with_values(_plain(), "cubes", -3.0),
    "Regression, an unknown cube that is none": lambda: _with_values(_plain(), "cubes", -np.inf),
    "Regression, infinite cubes of more rows": lambda: _with_values(
        _right(), "cubes", np.inf, np.inf, np.inf
    ),
    "Calibration, cubes above their squares": lambda: _with_values(
        _calibration(), "brier_cubes", 1.0
    ),
    "Calibration, cubes below 0": lambda: _with_values(_calibration(), "loss_cubes", -9.0),
    "IntraListSimilarity, cubes above their squares": lambda: _with_values(
        _similarity(0.0), "cubes", 1.0
    ),
    "IntraListSimilarity, infinite cubes of more lists": lambda: _with_values(
        _similarity(0.0), "cubes", np.inf, np.inf
    ),
    "RankingMetrics, cubes above their squares": lambda: _cubes_of_hits(1.0),
    "RankingMetrics, cubes of weights below 0": lambda: _cubes_of_hits(-2.0),
    "Ratio, more clicks than rows": lambda: _with_values(_ratio(), "numerator", 2.0),
    "Ratio, half a click": lambda: _with_values(_ratio(), "numerator", 0.5),
    "Ratio, a row that is over nothing": lambda: _with_values(_ratio(), "denominator", -1.0),
    "Ratio, an infinity of shares": lambda: _with_values(_ratio(), "numerator", np.inf),
    "Calibration, hits above the scores": lambda: _with_values(
        _calibration(), "predicted_of_positives", 2.0
    ),
    "Calibration, squares above the scores": lambda: _with_values(_calibration(), "squares", 1.0),
    "Calibration, squares below the mean's": lambda: _with_values(_calibration(), "squares", -0.25),
    "Calibration, a loss below 0": lambda: _with_values(_calibration(), "losses", -99.0),
    "Calibration, a row in the buckets alone": lambda: _by_mass(23, 1, 0.0),
    "Calibration, scores outside of their buckets": lambda: _by_mass(24, 0, 0.25),
    "Calibration, scores without rows": lambda: _by_mass(3, 0, 2.0**-22),
    "MulticlassConfusion, ranks of more rows": _ranks,
    "IntraListSimilarity, above 1": _similarity,
    "RankingMetrics, more hits than lists": _hits,
    "GroupedAUC, scores of rounded rows": _rounded,
    "Joined, closed after the end of time": lambda: _joined("closed_before", 2**62 + 1),
    "Joined, an event before time": lambda: _joined("newest", 2**63 - 1),
    "JoinRows, an outcome of no name": _outcomes,
    "Exposed, closed after the end of time": lambda: _exposed("closed_before", 2**62 + 1),
    "ExposedRows, an exposure to an arm without a name": lambda: _nameless("exposure_rows"),
    "ExposedRows, a known exposure to an arm without a name": lambda: _nameless("known_rows"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_numbers_that_no_rows_have_are_refused(name: str) -> None:
    state = IMPOSSIBLE[name]()
    with pytest.raises(StateError):
        load(state.to_bytes())


def _keyed(metric: Accumulator, numbers: Sequence[float], n: int, random: Random) -> PerKey:
    """Keys of one row, of equal rows, of rows of one class, and of many."""
    state = PerKey(metric)
    for key in range(n):
        rows = random.choice((1, 2, 9))
        columns = {}
        for name in (argument for argument in metric.arguments() if argument != "weights"):
            is_class = name == "labels" and not isinstance(metric, Regression)
            choices = (0, 1) if is_class else numbers
            choices = random.sample(choices, random.choice((1, 2)))
            columns[name] = [random.choice(choices) for _ in range(rows)]
        state.update([key] * rows, **columns)
    return state


_PROBABLE = (0.0, 1.0, 0.25, 0.7, 2**-20, 0.999)
_MANY_READ = {
    "Ratio, clicks": (Ratio(), (0.0, 1.0)),
    "Ratio, amounts": (Ratio(), (0.0, 1.0, 2.0, 0.7, 1e200)),
    "Calibration": (Calibration(bins=3), _PROBABLE),
    "Calibration, clipped": (Calibration(bins=3, clip=2**-10), _PROBABLE),
    "Calibration, by mass": (Calibration(bins=3, grid="relative", resolution=0), _PROBABLE),
    "Calibration, tiny scores": (Calibration(bins=3), (*_PROBABLE, 1e-100, 1e-200)),
    "Regression": (Regression(), (0.0, 1.0, -2.5, 1e9, 0.1)),
    "Regression, of any size": (Regression(), (0.0, 1.0, 1e100, -1e140, 1e-130)),
    "Regression, large": (Regression(), (0.0, 1e50, -1e55, 1e58)),
}


@pytest.mark.parametrize("name", [*_MANY_READ])
def test_numbers_among_those_of_many_keys_are_refused_as_alone(name: str) -> None:
    metric, numbers = _MANY_READ[name]
    random, refused = Random(name), 0
    state = _keyed(metric, numbers, 40, random)
    state.compute()
    assert load(state.to_bytes()) == state
    for _ in range(tries(60, 600)):
        changed: Any = state.copy()
        child, slot = changed.states.child, random.randrange(40)
        sums = {part: (c, slot) for part, c in vars(child).items() if type(c) is ExactSumColumn}
        if isinstance(metric, Calibration):
            cell = random.randrange(metric.bins)
            sums["predicted"] = (child.predicted.inner, slot * metric.bins + cell)
        part = random.choice(list(sums))
        column, at_slot = sums[part]
        size = abs(column.value(at_slot)) or 1.0
        amounts = (
            size,
            2 * size * random.random(),
            size * 2**-29,
            size * 2**-32,
            size * 2**-52,
            1.0,
            5e-324,
            np.inf,
        )
        value = random.choice((1, -1)) * random.choice(amounts)
        column.add(np.array([value]), np.array([at_slot]))
        key = next(key for key, position in changed.states.index[0].items() if position == slot)
        accepted = []
        for candidate in (changed, changed.state(key)):
            try:
                accepted.append(load(candidate.to_bytes()) == candidate)
            except StateError:
                accepted.append(False)
        assert accepted[0] == accepted[1], (part, key, value)
        refused += not accepted[0]
    assert refused


def test_hits_that_the_squares_exclude_are_refused_among_those_of_many_keys() -> None:
    state: Any = PerKey(Calibration())
    for key in range(20):
        state.update([key] * 5, labels=[1, 1, 1, 0, 0], scores=[0.7, 0.25, 0.25, 0.7, 0.7])
    state.compute()
    assert load(state.to_bytes()) == state
    state.states.child.predicted_of_positives.add(np.array([1.3]), np.array([7]))
    with pytest.raises(StateError):
        load(state.to_bytes())


def test_events_at_the_beginning_of_time_are_read_and_joined() -> None:
    state = Joined(Ratio(), {}, {"click": "once"}, 60_000, inputs={"numerators": "click"})
    state.update(["impression"], [1], [-(2**62) + 1])
    assert load(state.to_bytes()).compute() == state.compute()
