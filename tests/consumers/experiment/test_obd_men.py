"""The real stream: at one look it convinces, and to who may look whenever he likes it does not."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from tests.consumers.obd_men import FILE, METRICS, TOML

EXPERIMENT = """\
[experiment]
control = "random"
unit = "event_id"
on_several_variants = "keep"
decision = ["ctr"]
cluster = "none"
horizon = 10000
baseline = 0.00575
epochs = []
"""


@pytest.mark.slow
def test_obd_men_convinces_at_one_look_and_not_at_all_looks(data: Path, tmp_path: Path) -> None:
    source = f'kind = "file"\npath = "{data / FILE}"'
    config = tmp_path / "obd.toml"
    text = TOML.format(source=source, metrics=METRICS, store="obd.db", interval_s=5)
    config.write_text(text + EXPERIMENT, encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    with closing(Ledger.open(str(tmp_path / "obd.db"))) as ledger:
        found = json.loads(to_json(read_results(ledger, Query())))
    (one,) = found["comparisons"]
    assert f"{one['pvalue']:.3f} {one['anytime_pvalue']:.4f}" == "0.031 0.6073"
    assert one["effect_size"] == 0.0023
    assert one["sentence"].startswith("We cannot tell yet")
    assert found["srm"]["counts"] == {"bts": 10_000, "random": 10_000}
