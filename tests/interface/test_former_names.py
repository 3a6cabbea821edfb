"""Arguments that had another name: it still works, warns, and is the one in stored settings."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from streammetrics import (
    GroupedAUC,
    GroupedScores,
    InputError,
    Joined,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    UserGroups,
    load,
)
from tests.consumers.small_config import config

LABELS, SCORES = [0, 1, 1, 0], [0.9, 0.5, 0.3, 0.2]
USERS, QUERIES = [1, 1, 2, 2], [7, 8, 7, 8]
ROWS = {"labels": LABELS, "scores": SCORES}


def ranked() -> GroupedScores:
    return GroupedScores(["MRR"])


def test_former_names_count_the_same_rows_and_warn() -> None:
    now, before = ranked(), ranked()
    now.update(**ROWS, groups=QUERIES)
    with pytest.warns(DeprecationWarning, match="GroupedScores: lists= is now groups="):
        before.update(**ROWS, lists=QUERIES)  # type: ignore[call-arg]
    assert before == now
    with pytest.raises(TypeError):
        now.update(**ROWS, groups=QUERIES, lists=QUERIES)  # type: ignore[call-arg]
    of_users, formerly = UserGroups(Ratio()), UserGroups(Ratio())
    of_users.update(groups=USERS, numerators=LABELS)
    with pytest.warns(DeprecationWarning, match="UserGroups: users= is now groups="):
        formerly.update(users=USERS, numerators=LABELS)
    assert formerly == of_users


def test_users_keep_their_name_beside_groups_of_the_metric_itself() -> None:
    by_name, first = UserGroups(GroupedAUC()), UserGroups(GroupedAUC())
    by_name.update(users=USERS, groups=QUERIES, **ROWS)
    first.update(USERS, groups=QUERIES, **ROWS)
    assert by_name == first
    assert [*by_name.arguments()][:1] == ["users"]
    for given in ((), (USERS, USERS)):
        with pytest.raises(InputError, match="one column of user ids"):
            first.update(*given, groups=QUERIES, **ROWS)


def test_a_panel_gives_columns_of_former_names_to_those_who_read_them() -> None:
    panel = Panel({"gauc": GroupedAUC(), "ndcg": ranked(), "ratio": UserGroups(Ratio())},
                  inputs={"ratio": {"numerators": "labels"}})  # fmt: skip
    one, apart, keyed = panel.copy(), panel.copy(), PerKey(panel)
    one.update(**ROWS, groups=USERS)
    assert one.state("ndcg").compute().lists_kept == 2
    with pytest.warns(DeprecationWarning) as found:
        apart.update(**ROWS, groups=USERS, lists=QUERIES)
    assert [str(one.message) for one in found] == ["Panel: lists= is now groups="]
    expected = ranked()
    expected.update(**ROWS, groups=QUERIES)
    assert apart.state("ndcg") == expected
    assert apart.state("gauc") == one.state("gauc")
    assert apart.state("ratio") == one.state("ratio")
    with pytest.warns(DeprecationWarning, match="lists="):
        keyed.update(["a"] * 4, **ROWS, groups=USERS, lists=QUERIES)
    assert keyed.state("a") == apart


def test_stored_settings_have_the_former_names_and_load_without_a_warning() -> None:
    now = Panel({"m": ranked()}, inputs={"m": {"groups": "query"}})
    with pytest.warns(DeprecationWarning, match=r"Panel\.inputs\['m'\]: lists= is now groups="):
        before = Panel({"m": ranked()}, inputs={"m": {"lists": "query"}})
    assert before == now and "'groups': 'query'" in repr(before)
    assert b'"lists":"query"' in now.to_bytes()
    assert load(now.to_bytes()) == now
    with pytest.raises(SettingsError, match="lists"):
        Panel({"m": ranked()}, inputs={"m": {"lists": "query", "groups": "query"}})


def test_a_join_reads_former_names_too() -> None:
    def joined(column: str, inputs: dict[str, str] | None = None) -> Joined:
        columns = {"scores": "float64", column: "int64"}
        return Joined(ranked(), columns, {"click": "once"}, 1000, inputs=inputs)

    now = joined("query", {"groups": "query"})
    with pytest.warns(DeprecationWarning, match="lists= is now groups="):
        assert joined("query", {"lists": "query"}) == now
    with pytest.warns(DeprecationWarning, match="lists= is now groups="):
        by_default = joined("lists")
    for state in (now, by_default):
        assert b'"lists":"' in state.to_bytes()
        assert load(state.to_bytes()) == state


def test_the_config_takes_both_names_and_stays_the_same_one() -> None:
    event = 'time = "ts"\nvariant = "v"\nlabel = "y"\nscore = "p"\nitem = "doc"'

    def described(inputs: str) -> str:
        metrics = f'm = {{ type = "GroupedScores", measures = ["MRR"], inputs = {{ {inputs} }} }}'
        return json.dumps(config(event=event, metrics=metrics).descriptions["m"])

    assert described('lists = "query"') == described('groups = "query"')
    assert '"lists": "query:hashed_id"' in described('groups = "query"')


def test_a_table_with_columns_of_both_names_is_refused() -> None:
    from streammetrics.core.tables import arguments_of

    panel = Panel({"gauc": GroupedAUC(), "ndcg": ranked()})
    lists_only = pa.record_batch({**ROWS, "lists": QUERIES})
    with pytest.warns(DeprecationWarning, match="lists= is now groups="):
        assert arguments_of(ranked(), lists_only, {}, "table")["groups"].tolist() == QUERIES
    with pytest.raises(InputError, match="'lists' is its former name"):
        arguments_of(
            panel, pa.record_batch({**ROWS, "groups": USERS, "lists": QUERIES}), {}, "table"
        )
