"""Sealed: totals of complete users, the same bytes however users were hashed into buckets."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
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
from streammetrics.kernels.curves import area_sums
from streammetrics.ranking import area_totals as of_groups
from streammetrics.testing import Case
from tests.cases import CASES
from tests.combine.sealed_states import DAY, dealt, fed, sealing, some_rows
from tests.depth import most_are_slow

USERS = ("groups", "lists", "users")  # the columns that say whose row it is


def sealable(case: Case[Any]) -> bool:
    try:
        Sealed(case.empty, DAY)
    except SettingsError:
        return False
    return True


def user_of(case: Case[Any], row: object) -> object:
    """Whose row it is; one name for all where a metric tells no users apart."""
    columns = case.columns([row])
    found = [np.asarray(columns[name]).ravel()[:1].tolist() for name in USERS if name in columns]
    return str(found[0]) if found and type(case.empty).__name__ in KEYED else str(row)


KEYED = ("GroupedAUC", "GroupedScores", "Panel")
SEALABLE = [case for case in CASES if sealable(case)]


def check_sealing(case: Case[Any], rows: list[Any], random: Random) -> None:
    """The law: users dealt to any buckets, sealed and merged in any tree, are the whole sealed."""
    n = random.randint(1, 5)
    bucket: dict[object, int] = {}
    parts: list[list[Any]] = [[] for _ in range(n)]
    for row in rows:
        parts[bucket.setdefault(user_of(case, row), random.randrange(n))].append(row)
    states = [seal(case.fed(part), sealing(n), i) for i, part in enumerate(parts)]
    before = [state.to_bytes() for state in states]
    random.shuffle(states)
    kept = list(states)
    while len(states) > 1:
        a, b = (states.pop(random.randrange(len(states))) for _ in range(2))
        ab, ba = a + b, b + a
        assert ab == ba and ab.provenance == ba.provenance, "a + b is not b + a"
        states.append(ab)
    (total,) = states
    assert sorted(before) == sorted(state.to_bytes() for state in kept), "an operand changed"
    opened = case.fed(rows)
    whole = seal(opened, sealing(1))
    assert total.to_bytes() == whole.to_bytes(), "buckets leave a trace"
    assert total.complete and whole.complete
    assert opened == case.fed(rows), "sealing changed the state"
    back = load(total.to_file_bytes())
    assert back == total and back.provenance == total.provenance
    text = repr(case.fed(rows).compute())
    # An end of an interval may be the next float outwards; see the tests of the kernel.
    if "Bounded" not in text:
        assert repr(total.compute()) == text, "the result is another one"
    with pytest.raises(OverlapError):
        total.merge(kept[0])
    assert total.to_bytes() == whole.to_bytes(), "a refused merge changed the state"


def run(case: Case[Any], examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(case.row, max_size=16), st.randoms(use_true_random=True))
    def holds(rows: list[Any], random: Random) -> None:
        check_sealing(case, rows, random)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("case", list(most_are_slow(SEALABLE)), ids=str)
def test_any_dealing_of_users_to_buckets_gives_the_same_bytes_and_the_same_result(
    case: Case[Any],
) -> None:
    run(case, 5)


@pytest.mark.parametrize("case", [case for case in CASES if case not in SEALABLE], ids=str)
def test_what_cannot_be_sealed_holds_users_apart_by_something_else_or_has_a_limit(
    case: Case[Any],
) -> None:
    with pytest.raises(SettingsError, match=r"by itself or in a Panel|max_rows=None|takes rows"):
        Sealed(case.empty, DAY)


@pytest.mark.parametrize(
    "metric",
    [
        PerKey(GroupedAUC()),
        Windows(Panel({"a": GroupedScores(["MRR"])}), size_s=60),
        UserGroups(GroupedAUC()),
        Panel({"a": PerKey(GroupedAUC())}),
        GroupedAUC(max_rows=10),
        GroupedScores(["MRR"], max_rows=10),
    ],
    ids=repr,
)
def test_what_would_have_users_meet_again_is_refused_with_the_reason(metric: Accumulator) -> None:
    with pytest.raises(SettingsError, match=r"share users|fewer rows than the whole"):
        seal(metric, sealing())


def test_metrics_without_users_are_sealed_as_they_are() -> None:
    keyed = PerKey(Ratio())
    keyed.update(["a", "b"], numerators=[1, 0])
    assert seal(keyed, sealing()).compute() == keyed.compute()


# -- mutants: what would break the law is seen by it


def in_a_float32(*args: Any, **named: Any) -> area_sums.AreaSums:
    found = area_sums.area_sums(*args, **named)
    return found._replace(value=int(np.float32(found.value)))


def of_the_mean(groups: Any, weight: str, **named: Any) -> area_sums.AreaSums:
    """Rounds the sum of a bucket, and not each area."""
    found = area_sums.area_sums(groups, weight, **named)
    return found._replace(value=(found.value >> 93) << 93)


@pytest.mark.parametrize("broken", [in_a_float32, of_the_mean], ids=lambda f: f.__name__)
def test_sums_that_depend_on_the_buckets_are_noticed(
    broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_groups, "area_sums", broken)
    rows = some_rows(300, 1, users=40)
    total = sum(dealt(rows, 7)[1:], start=dealt(rows, 7)[0])
    assert total != seal(fed(rows), sealing(1))


def test_a_user_in_two_buckets_gives_another_number() -> None:
    rows = some_rows(300, 1)
    halves = [seal(fed(rows[i::2]), sealing(2), i) for i in (0, 1)]
    assert halves[0] + halves[1] != seal(fed(rows), sealing(1))


# -- proof


def test_the_same_bucket_twice_is_refused_and_nothing_changes() -> None:
    a, b, *_ = dealt(some_rows(40, 2), 4)
    both = a + b
    before = both.to_file_bytes()
    for again in (a, b, both, both.copy()):
        with pytest.raises(OverlapError, match="twice"):
            both.merge(again)
    assert both.to_file_bytes() == before
    assert (both.buckets, both.complete) == ((2, 4), False)


@pytest.mark.parametrize(
    "other", [{"name": "another"}, {"of": "session"}, {"n": 5}], ids=lambda o: next(iter(o))
)
def test_another_hash_column_or_number_of_buckets_is_refused(other: dict[str, Any]) -> None:
    n = other.pop("n", 4)
    a, b = dealt(some_rows(40, 2), 4)[0], dealt(some_rows(40, 2), n, **other)[1]
    with pytest.raises(OverlapError, match=r"sealed/hash\(user\) mod 4/2026-11-01"):
        a.merge(b)


def test_another_scope_is_refused() -> None:
    a, b = dealt(some_rows(40, 2), 4)[0], dealt(some_rows(40, 2), 4, scope="2026-11-02")[1]
    with pytest.raises(SettingsError, match="scope"):
        a.merge(b)


def test_groups_that_may_share_users_are_refused() -> None:
    a = seal(fed(some_rows(40, 2)), sealing(), 0, '["a"]')
    b = seal(fed(some_rows(40, 3)), sealing(), 1, '["b"]')
    with pytest.raises(OverlapError, match="keep groups apart"):
        a.merge(b)


def test_bare_bytes_prove_nothing_and_refuse_to_merge() -> None:
    a, b, *_ = dealt(some_rows(40, 2), 4)
    bare = Sealed.from_bytes(a.to_bytes())
    assert bare == a and bare.buckets == (0, 0) and not bare.complete
    for merge in (lambda: bare + b, lambda: b + bare):
        with pytest.raises(StateError, match="whole envelope"):
            merge()


def test_an_empty_state_is_the_identity() -> None:
    a = dealt(some_rows(40, 2), 4)[0]
    for total in (a.empty() + a, a + a.empty(), sum([a], start=a.empty())):
        assert total == a and total.provenance == a.provenance
    assert a.empty().buckets == (0, 0) and not a.empty().complete


def test_what_the_open_state_counted_goes_with_it() -> None:
    state = fed(some_rows(10, 2))
    state.provenance.add("clicks/0", 5, 9, "piece")
    assert ("clicks/0", "piece", 5, 9) in list(seal(state, sealing()).provenance)


def test_copies_and_pickles_keep_the_proof() -> None:
    a = dealt(some_rows(40, 2), 4)[0]
    for twin in (a.copy(), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin == a and twin.buckets == (1, 4)


def test_it_takes_no_rows_and_is_part_of_nothing() -> None:
    a = dealt(some_rows(40, 2), 4)[0]
    for refuse in (a.update, a.check):
        with pytest.raises(InputError, match="compute the whole scope again"):
            refuse(labels=[1], scores=[0.5], groups=[1])
    for make in (lambda: Panel({"a": a.empty()}), lambda: PerKey(a.empty())):
        with pytest.raises(SettingsError, match="merge such states by themselves"):
            make()


@pytest.mark.parametrize(
    "wrong",
    [{"of": "a/b"}, {"hash": "a/b"}, {"scope": 3}, {"n_buckets": 0}, {"n_buckets": True}],
    ids=str,
)
def test_a_sealing_that_says_nothing_clear_is_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"of": "user", "n_buckets": 4, "hash": "h", "scope": DAY}
    with pytest.raises(SettingsError, match="sealing"):
        Sealing(**{**right, **wrong})


@pytest.mark.parametrize("bucket", [-1, 4, 1.0])
def test_a_bucket_that_is_not_there_is_refused(bucket: Any) -> None:
    with pytest.raises(SettingsError, match="from 0 to 3"):
        seal(GroupedAUC(), sealing(4), bucket)


def test_a_sealed_state_keeps_nothing_of_the_state_that_it_was_made_from() -> None:
    clicks = Ratio()
    clicks.update([1, 0])
    sealed = seal(clicks, sealing(1))
    before = sealed.to_bytes()
    clicks.update([1])
    assert sealed.to_bytes() == before


def test_a_sealed_state_knows_how_many_rows_it_counted() -> None:
    clicks = Ratio()
    clicks.update([1, 0, 1])
    sealed = seal(clicks, sealing(1))
    assert sealed._total_count == 3 <= load(sealed.to_bytes())._total_count  # a bound


def test_buckets_that_do_not_follow_each_other_are_counted_too() -> None:
    total = sum((seal(Ratio(), sealing(5), i) for i in (4, 0, 2)), Sealed(Ratio(), DAY))
    assert isinstance(total, Sealed)
    assert total.buckets == (3, 5) and not total.complete
