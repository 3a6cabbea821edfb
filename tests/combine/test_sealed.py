"""Sealed: totals of complete users, the same bytes however users were hashed into buckets."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    InputError,
    OverlapError,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    StateError,
    UserGroups,
    Windows,
    load,
)
from streammetrics.combine.sealed import Sealed, Sealing, seal
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.core.totals import WithoutRows, totals_of, unlimited
from streammetrics.ranking import grouped_scores
from streammetrics.results import views_of
from streammetrics.testing import Case
from streammetrics.testing.laws import exact_text
from tests.cases import CASES
from tests.depth import tries
from tests.expected import same_result

DAY = "2026-11-01"
USERS = ("groups", "users")  # the columns that say whose row it is
KEYED = ("GroupedAUC", "GroupedScores", "Panel")


def sealing(n: int = 4, *, column: str = "user", name: str = "hash", scope: str = DAY) -> Sealing:
    return Sealing(of=column, n_buckets=n, hash=name, scope=scope)


def fed(rows: list[tuple[int, int, float]], metric: Accumulator | None = None) -> Accumulator:
    """A state of rows (user, label, score)."""
    state = (metric or GroupedAUC()).empty()
    if rows:
        users, labels, scores = zip(*rows, strict=True)
        state.update(labels=labels, scores=scores, groups=users)
    return state


def some_rows(n: int, seed: int, users: int = 9) -> list[tuple[int, int, float]]:
    random = Random(seed)
    return [
        (random.randrange(users), random.randrange(2), random.randrange(8) / 8) for _ in range(n)
    ]


def hashed(n: int = 4, rows: int = 40, users: int = 9, **how: Any) -> list[Sealed]:
    """The rows of users sealed in n buckets."""
    parts: list[list[tuple[int, int, float]]] = [[] for _ in range(n)]
    for row in some_rows(rows, 2, users):
        parts[row[0] % n].append(row)
    return [seal(fed(part), sealing(n, **how), i) for i, part in enumerate(parts)]


# -- the law


def sealable(case: Case[Any]) -> bool:
    try:
        Sealed(case.empty, DAY)
    except SettingsError:
        return False
    return True


SEALABLE = [case for case in CASES if sealable(case)]
# Those whose users it tells apart, and one of each other class, of which it holds the state itself.
SOME = {
    type(case.empty).__name__ if type(case.empty).__name__ not in KEYED else str(case): case
    for case in SEALABLE
}


def user_of(case: Case[Any], row: object) -> object:
    """Whose row it is; one name for all where a metric tells no users apart."""
    columns = case.columns([row])
    users = [np.asarray(columns[name]).ravel()[:1].tolist() for name in USERS if name in columns]
    return str(users[0]) if users and type(case.empty).__name__ in KEYED else str(row)


def check_sealing(case: Case[Any], rows: list[Any], random: Random) -> None:
    """The law: users in any buckets, sealed and merged in any tree, are the whole sealed."""
    n = random.randint(1, 5)
    bucket: dict[object, int] = {}
    parts: list[list[Any]] = [[] for _ in range(n)]
    for row in rows:
        parts[bucket.setdefault(user_of(case, row), random.randrange(n))].append(row)
    states = [seal(case.fed(part), sealing(n), i) for i, part in enumerate(parts)]
    before = [state.to_bytes() for state in states]
    random.shuffle(states)
    operands = list(states)
    while len(states) > 1:
        a, b = (states.pop(random.randrange(len(states))) for _ in range(2))
        ab, ba = a + b, b + a
        assert ab == ba and ab.provenance == ba.provenance, "a + b is not b + a"
        states.append(ab)
    (total,) = states
    assert sorted(before) == sorted(state.to_bytes() for state in operands), "an operand changed"
    opened = case.fed(rows)
    whole = seal(opened, sealing(1))
    assert total.to_bytes() == whole.to_bytes(), "buckets leave a trace"
    assert total.complete and whole.complete
    assert opened == case.fed(rows), "sealing changed the state"
    back = load(total.to_file_bytes())
    assert back == total and back.provenance == total.provenance
    text = exact_text(case.fed(rows).compute())
    # An end of an interval may be the next float outwards; see the tests of the kernel.
    if "Bounded" not in text:
        assert exact_text(total.compute()) == text, "the result is another one"
    with pytest.raises(OverlapError):
        total.merge(operands[0])
    assert total.to_bytes() == whole.to_bytes(), "a refused merge changed the state"


@pytest.mark.parametrize("case", SOME.values(), ids=SOME)
def test_any_buckets_of_users_give_the_same_bytes_and_the_same_result(case: Case[Any]) -> None:
    @settings(
        max_examples=tries(3, 50),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(case.row, max_size=16), st.randoms(use_true_random=True))
    def holds(rows: list[Any], random: Random) -> None:
        check_sealing(case, rows, random)

    holds()


def test_users_in_other_buckets_give_the_same_bytes() -> None:
    rows = some_rows(300, 1, users=40)
    for n in (1, 3, 7):
        parts = [[row for row in rows if row[0] % n == bucket] for bucket in range(n)]
        states = [seal(fed(part), sealing(n), i) for i, part in enumerate(parts)]
        assert sum(states[1:], start=states[0]) == seal(fed(rows), sealing(1))
    halves = [seal(fed(rows[i::2]), sealing(2), i) for i in (0, 1)]  # users in two buckets
    assert halves[0] + halves[1] != seal(fed(rows), sealing(1))


def test_a_sealed_grid_has_the_bounds_of_the_open_one() -> None:
    opened = fed(some_rows(300, 1), GroupedAUC(grid="equal", resolution=1))
    exact, result = opened.compute(), seal(opened, sealing(1)).compute()
    for name in ("low", "value", "high"):
        assert getattr(result.gauc, name) == pytest.approx(getattr(exact.gauc, name), rel=1e-15)
    assert exact.gauc.low < exact.gauc.high


def test_what_cannot_be_sealed_is_refused_with_the_reason() -> None:
    for case in CASES:
        if case not in SEALABLE:
            reason = r"by itself or in a Panel|max_rows=None|takes rows"
            with pytest.raises(SettingsError, match=reason):
                Sealed(case.empty, DAY)
    for metric in (
        PerKey(GroupedAUC()),
        Windows(Panel({"a": GroupedScores(["MRR"])}), size_s=60),
        UserGroups(GroupedAUC()),
        Panel({"a": PerKey(GroupedAUC())}),
        GroupedAUC(max_rows=10),
        GroupedScores(["MRR"], max_rows=10),
    ):
        with pytest.raises(SettingsError, match=r"share users|fewer rows than the whole"):
            seal(metric, sealing())


# -- proof


def test_the_same_bucket_twice_is_refused_and_nothing_changes() -> None:
    a, b, *_ = hashed()
    total = a + b
    before = total.to_file_bytes()
    for duplicate in (a, b, total, total.copy()):
        with pytest.raises(OverlapError, match="twice"):
            total.merge(duplicate)
    assert total.to_file_bytes() == before
    assert (total.buckets, total.complete) == ((2, 4), False)
    apart = sum((seal(Ratio(), sealing(5), i) for i in (4, 0, 2)), Sealed(Ratio(), DAY))
    assert isinstance(apart, Sealed)
    assert apart.buckets == (3, 5) and not apart.complete


def test_buckets_of_another_sealing_are_refused() -> None:
    first = hashed()[0]
    changes: list[dict[str, Any]] = [{"name": "another"}, {"column": "session"}, {"n": 5}]
    for change in changes:
        with pytest.raises(OverlapError, match=r"sealed/hash\(user\) mod 4/2026-11-01"):
            first.copy().merge(hashed(**change)[1])
    with pytest.raises(SettingsError, match="scope"):
        first.merge(hashed(scope="2026-11-02")[1])
    a, b = (seal(fed(some_rows(40, i)), sealing(), i, f'["{i}"]') for i in (0, 1))
    with pytest.raises(OverlapError, match="keep groups apart"):
        a.merge(b)


def test_bare_bytes_prove_nothing_and_refuse_to_merge() -> None:
    a, b, *_ = hashed()
    bare = Sealed.from_bytes(a.to_bytes())
    assert bare == a and bare.buckets == (0, 0) and not bare.complete
    for merge in (lambda: bare + b, lambda: b + bare):
        with pytest.raises(StateError, match="whole envelope"):
            merge()


def test_an_empty_state_is_the_identity_and_a_copy_keeps_the_proof() -> None:
    a = hashed()[0]
    for total in (a.empty() + a, a + a.empty(), sum([a], start=a.empty()), a.copy()):
        assert total == a and total.provenance == a.provenance and total.buckets == (1, 4)
    assert a.empty().buckets == (0, 0) and not a.empty().complete
    state = fed(some_rows(10, 2))
    state.provenance.add("clicks/0", 5, 9, "piece")
    assert ("clicks/0", "piece", 5, 9) in list(seal(state, sealing()).provenance)


def test_it_takes_no_rows_and_is_part_of_nothing() -> None:
    a = hashed()[0]
    for refuse in (a.update, a.check):
        with pytest.raises(InputError, match="recompute the whole scope"):
            refuse(labels=[1], scores=[0.5], groups=[1])
    for make in (lambda: Panel({"a": a.empty()}), lambda: PerKey(a.empty())):
        with pytest.raises(SettingsError, match="merge these states outside a panel"):
            make()


def test_a_sealing_or_a_bucket_that_cannot_be_is_refused() -> None:
    right: dict[str, Any] = {"of": "user", "n_buckets": 4, "hash": "h", "scope": DAY}
    for wrong in ({"of": "a/b"}, {"hash": "a/b"}, {"scope": 3}, {"n_buckets": 0}):
        with pytest.raises(SettingsError, match="sealing"):
            Sealing(**{**right, **wrong})
    with pytest.raises(SettingsError, match="sealing"):
        Sealing(**{**right, "n_buckets": True})
    bucket: Any
    for bucket in (-1, 4, 1.0):
        with pytest.raises(SettingsError, match="from 0 to 3"):
            seal(GroupedAUC(), sealing(4), bucket)


def test_a_sealed_state_knows_how_many_rows_it_counted() -> None:
    clicks = Ratio()
    clicks.update([1, 0, 1])
    sealed = seal(clicks, sealing(1))
    assert sealed._total_count == 3 <= load(sealed.to_bytes())._total_count  # a bound


# -- results, and bytes that are no state


def test_results_have_the_intervals_of_the_open_state() -> None:
    metric = Panel(
        {"gauc": GroupedAUC(), "lists": GroupedScores(["NDCG@3", "HR@2"]), "auc": HistogramAUC()},
    )
    opened = fed(some_rows(400, 4, users=30), metric)
    result, exact = seal(opened, sealing(1)).compute(), opened.compute()
    for name in metric.metrics:
        for view in views_of(exact[name]):
            assert same_result(result[name].interval(view), exact[name].interval(view))


def test_a_list_too_long_to_be_ranked_leaves_the_result_undefined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouped_scores, "LONGEST", 4)
    state = GroupedScores(["MRR"])
    state.update([1] * 6, [0.5] * 6, groups=[1, 1, 1, 1, 1, 2])
    result = seal(state, sealing(1)).compute()
    assert np.isnan(result["MRR"]) and result.rows == 6
    assert result.reason.startswith("a list has 5 rows")


def test_totals_that_are_no_whole_numbers_are_no_state() -> None:
    good = seal(fed(some_rows(40, 2)), sealing(1))
    good.inner.sums.add(np.array([0.5]), np.array([2]))
    with pytest.raises(StateError, match="not whole numbers"):
        Sealed.from_bytes(good.to_bytes())


@pytest.mark.parametrize("metric", [GroupedAUC(), GroupedScores(["MRR"])], ids=["areas", "lists"])
def test_bytes_with_any_byte_changed_are_refused_or_are_a_state_with_a_result(
    metric: Accumulator,
) -> None:
    state, random = metric.empty(), Random(7)
    state.update([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], groups=[7, 7, 8, 8])
    data = seal(state, sealing()).to_bytes()
    head, body = unframe(STATE_MAGIC, data)
    for _ in range(tries(100, 2_000)):
        hostile = bytearray(body)
        hostile[random.randrange(len(body))] = random.randrange(256)
        damaged = frame(STATE_MAGIC, head, bytes(hostile))
        try:
            read = load(damaged)
        except StateError:
            continue
        assert read.to_bytes() == damaged
        assert views_of(read.compute())


def test_what_takes_no_rows_says_so() -> None:
    users = GroupedAUC()
    sealed = seal(users, sealing(1))
    assert isinstance(sealed, WithoutRows)
    for refused in (sealed.update, sealed.check, totals_of(users).update):
        with pytest.raises(InputError, match="recompute the whole scope"):
            refused(labels=[1])
    assert "leave max_rows out" in str(unlimited(GroupedAUC(max_rows=3)))
