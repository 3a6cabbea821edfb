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
        wanted = []
        for name in ("ranker", "price"):
            query = Query("all", headlines=True, experiment=name)
            exposed = json.loads(b"".join(read_json(ledger, query)))["exposed"]
            parts = [("closed", None, exposed["beside"])]
            parts += [("since", part["from_day"], part["effects"]) for part in exposed["since"]]
            wanted += [
                (name, units, day, one["metric"], one["units"], one["effect_size"])
                for units, day, effects in parts
                for one in effects
            ]
    columns = "experiment", "unit_view", "from_day", "metric", "units", "effect_size"
    found = [tuple(row[NAMES.index(column)] for column in columns) for row in rows]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert {row[1:3] for row in found} >= {("closed", None), ("since", 0), ("since", 1)}
    assert len({key_of(row) for row in rows}) == len(rows)


def test_the_units_that_do_not_decide_have_their_days_where_they_are_closed() -> None:
    for plan, beside, days in (("so_far", "closed", True), ("closed", "so_far", False)):
        _, answer = answers(units=plan)
        values = list(exposed_values(answer))
        named = [value for value in values if value["unit_view"] == beside]
        assert len(named) == len(answer.beside) > 0
        assert [value.get("exposed_from_ms") is not None for value in named] == [days] * len(named)
        assert len(values) - len(named) == sum(len(part.effects) for part in answer.since)
