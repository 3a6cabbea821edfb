"""The effects on exposed units are rows of an export, each with the units that it is of."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from streammetrics_consumers.export.columns import EXPOSED, NAMES, key_of
from streammetrics_consumers.export.exposed_values import exposed_values
from streammetrics_consumers.export.result_rows import read_rows
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_json

from tests.consumers.export.exported import ALL
from tests.consumers.exposed_stream import exposed_config, run, stream
from tests.consumers.render.exposed import answers


def test_a_store_has_a_row_for_each_effect_of_its_json(tmp_path: Path) -> None:
    with closing(Ledger.open(str(tmp_path / "store.db"), create=True)) as ledger:
        run(exposed_config(window_s=3 * 86_400), ledger, stream(1, units=30).logs)
        rows = [row for row in read_rows(ledger, ALL) if row[NAMES.index("record")] == EXPOSED]
        expected = []
        for name in ("ranker", "price"):
            query = Query("all", headlines=True, experiment=name)
            exposed = json.loads(b"".join(read_json(ledger, query)))["exposed"]
            parts = [("closed", None, exposed["beside"])]
            parts += [("since", part["from_day"], part["effects"]) for part in exposed["since"]]
            expected += [
                (name, units, day, effect["metric"], effect["units"], effect["effect_size"])
                for units, day, effects in parts
                for effect in effects
            ]
    columns = "experiment", "unit_view", "from_day", "metric", "units", "effect_size"
    effect_rows = [tuple(row[NAMES.index(column)] for column in columns) for row in rows]
    assert sorted(effect_rows, key=str) == sorted(expected, key=str)
    assert {row[1:3] for row in effect_rows} >= {("closed", None), ("since", 0), ("since", 1)}
    assert len({key_of(row) for row in rows}) == len(rows)


def test_the_units_that_do_not_decide_have_their_days_where_they_are_closed() -> None:
    for plan, unit_view, days in (("so_far", "closed", True), ("closed", "so_far", False)):
        _, answer = answers(units=plan)
        values = list(exposed_values(answer))
        side_values = [value for value in values if value["unit_view"] == unit_view]
        assert len(side_values) == len(answer.beside) > 0
        assert [value.get("exposed_from_ms") is not None for value in side_values] == [days] * len(
            side_values
        )
        assert len(values) - len(side_values) == sum(len(part.effects) for part in answer.since)
