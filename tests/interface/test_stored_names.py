"""Arguments and settings that have another name in stored settings: only there, and in configs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streammetrics import (
    GroupedAUC,
    GroupedScores,
    InputError,
    Joined,
    Panel,
    Ratio,
    SettingsError,
    UserGroups,
    load,
    registry,
)
from tests.consumers.small_config import config

LABELS, SCORES = [0, 1, 1, 0], [0.9, 0.5, 0.3, 0.2]
USERS, QUERIES = [1, 1, 2, 2], [7, 8, 7, 8]
ROWS = {"labels": LABELS, "scores": SCORES}


def ranked() -> GroupedScores:
    return GroupedScores(["MRR"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ranked().update(**ROWS, lists=QUERIES),  # type: ignore[call-arg]
        lambda: ranked().update_from({**ROWS, "query": QUERIES}, lists="query"),
        lambda: ranked().update_from({**ROWS, "lists": QUERIES}),
        lambda: UserGroups(Ratio()).update(users=USERS, numerators=LABELS),
        lambda: Panel({"ndcg": ranked()}).update(**ROWS, lists=QUERIES),
        lambda: Panel({"m": ranked()}, inputs={"m": {"lists": "query"}}),
        lambda: UserGroups(Ratio(), k=16),  # type: ignore[call-arg]
        lambda: registry.metric("UserGroups", {"metric": Ratio(), "k": 16}),
    ],
)
def test_a_stored_name_is_no_argument(call: Callable[[], object]) -> None:
    with pytest.raises((InputError, SettingsError, TypeError)):
        call()


def test_users_keep_their_name_beside_groups_of_the_metric_itself() -> None:
    by_name, first = UserGroups(GroupedAUC()), UserGroups(GroupedAUC())
    by_name.update(users=USERS, groups=QUERIES, **ROWS)
    first.update(USERS, groups=QUERIES, **ROWS)
    assert by_name == first
    assert [*by_name.arguments()][:1] == ["users"]
    for arguments in ((), (USERS, USERS)):
        with pytest.raises(InputError, match="one column of user ids"):
            first.update(*arguments, groups=QUERIES, **ROWS)


def test_bytes_have_the_stored_names_and_are_read() -> None:
    panel = Panel({"m": ranked()}, inputs={"m": {"groups": "query"}})
    columns = {"scores": "float64", "query": "int64"}
    joined = Joined(ranked(), columns, {"click": "once"}, 1000, inputs={"groups": "query"})
    buckets = UserGroups(Ratio(), buckets=16)
    assert "'groups': 'query'" in repr(panel)
    for state, text in (
        (panel, b'"lists":"query"'),
        (joined, b'"lists":"query"'),
        (buckets, b'"k":16'),
    ):
        data = state.to_bytes()
        assert text in data
        assert load(data) == state
    assert UserGroups.from_bytes(buckets.to_bytes()).buckets == 16


def test_the_config_takes_both_names_and_stays_the_same_one() -> None:
    event = 'time = "ts"\nvariant = "v"\nlabel = "y"\nscore = "p"\nitem = "doc"'

    def described(inputs: str) -> str:
        metrics = f'm = {{ type = "GroupedScores", measures = ["MRR"], inputs = {{ {inputs} }} }}'
        return json.dumps(config(event=event, metrics=metrics).descriptions["m"])

    assert described('lists = "query"') == described('groups = "query"')
    assert '"lists": "query:hashed_id"' in described('groups = "query"')
