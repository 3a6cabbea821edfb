"""Simulated streams: the same bytes for ever, the truth behind them, and their faults."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from math import sqrt
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation, share_within
from streammetrics_consumers.simulate.stream import _CLICKS, _FAULTS, Format, Simulation

from streammetrics import ExactAUC
from tests.consumers.small_config import chunk, config

SIMULATED = {
    "event": 'time = "ts"\nvariant = "variant"\nvariants = ["control", "treatment"]\n'
    'user = "user"\nlabel = "label"\nscore = "score"',
    "slices": 'by = [[], ["variant"]]',
    "windows": "size_s = 3600\nlateness_s = 600",
}


def lines(simulation: Simulation | JoinedSimulation) -> list[bytes]:
    return [line for batch in simulation.batches() for line in batch]


def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    """The digests stand for all that a stream is: heavy-tailed users, late and broken events, and
    outcomes that come later, some of them twice. A longer stream begins with a shorter one."""
    plain, joined = lines(Simulation(20_000, 7)), lines(JoinedSimulation(Simulation(20_000, 7)))
    digest = hashlib.sha256(b"\n".join(plain)).hexdigest()
    assert digest == "6e52431fc67a7644b9766dcfe3ec2b63b379f7f4daf794e4f02a39b473059e0d"
    digest = hashlib.sha256(b"\n".join(joined)).hexdigest()
    assert digest == "3c4520e946bc637ef908281d60e496792aace9946947d397926439556aedd168"
    ranked = lines(Simulation(20_000, 7, items=10))
    digest = hashlib.sha256(b"\n".join(ranked)).hexdigest()
    assert digest == "522e9e50c0cfd6c4fb14335377e81f265113d707516c70f81f9c62be490aef4c"
    for events in (0, 1, 9_000):
        assert lines(Simulation(events, 7)) == plain[:events]
        assert lines(JoinedSimulation(Simulation(events, 7))) == joined[:events]
    assert lines(Simulation(5, 2)) != plain[:5]


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="users"):
        Simulation(users=1)
    for items in (0, 65):
        with pytest.raises(ValueError, match="items must be 1 to 64"):
            Simulation(items=items)


def test_the_items_of_a_request_are_a_ranked_list_of_one_user() -> None:
    plain = lines(Simulation(3_000, 7, items=10))
    assert lines(Simulation(1_995, 7, items=10)) == plain[:1_995]  # it ends within a list
    good = [json.loads(line) for line in plain if line.endswith(b'"}') and line.count(b"{") == 1
            and b"\xff" not in line]  # fmt: skip
    lists: dict[str, list[dict[str, Any]]] = {}
    for event in good:
        if {"ts", "variant", "score"} <= event.keys() and isinstance(event["score"], float):
            lists.setdefault(event["list"], []).append(event)
    assert len(lists) == 300 and sum(map(len, lists.values())) > 2_980
    for events in lists.values():
        assert len({event["user"] for event in events}) == 1
        assert len({event["item"] for event in events}) == len(events)
        ranked = [event["score"] for event in events if event["score"] == event["score"]]
        assert ranked == sorted(ranked, reverse=True)
        assert [event["position"] for event in events] == sorted(
            event["position"] for event in events
        )
    shown = lines(JoinedSimulation(Simulation(3_000, 7, items=10)))
    ids = {line.partition(b'"list":"')[2][:-2] for line in shown if b'"impression"' in line[:20]}
    assert 270 < len(ids) < 330


def test_lists_have_the_truth_of_the_stream_without_them_and_a_column_in_csv() -> None:
    drawn = [next(Simulation(8_190, 7, items=items).drawn())[1] for items in (1, 10)]
    single_levels, ten = (np.sort(draws.levels) for draws in drawn)
    assert np.array_equal(single_levels, ten)
    assert len(np.unique(drawn[1].clock_ms)) == 819
    assert Simulation(1, 7, "csv", items=10).header() == Simulation(1, 7, "csv").header() + b",list"  # type: ignore[operator]
    assert lines(Simulation(1, 7, "csv", items=10))[0].endswith(b",l7-000000000")


def test_the_truth_is_what_many_events_come_close_to() -> None:
    simulation = Simulation(events=60_000, seed=3)
    decoder, truth = Decoder(config(**SIMULATED)), simulation.truth()
    auc = {name: ExactAUC() for name in truth}
    for batch in simulation.batches():
        decoded = decoder.decode(chunk(batch))
        labels = np.asarray(decoded.columns["label:label"])
        scores = np.asarray(decoded.columns["score:real"])
        variants = decoded.keys["variant"]
        for code, name in enumerate(variants.values):
            rows = (variants.codes == code) & (labels <= 1)
            auc[str(name)].update(labels[rows].astype(int), scores[rows])
    for name, exact in truth.items():
        curve = auc[name].compute()
        ctr, n = float(exact.ctr), curve.rows
        assert abs(curve.positives / n - ctr) < 4 * sqrt(ctr / n)
        assert abs(float(curve.auc) - float(exact.auc)) < 4 * sqrt(1 / 12 / (ctr * n))
    assert truth["treatment"].ctr > truth["control"].ctr
    assert truth["treatment"].auc > truth["control"].auc


def test_the_truth_counts_tied_pairs_one_half() -> None:
    # Scores have levels of equal chance, so the AUC is a sum over pairs of levels.
    for clicks, exact in zip(_CLICKS, Simulation(users=2).truth().values(), strict=True):
        # With two users all events are of rank 0, whose readiness is a half.
        p = clicks / 2**33
        below = np.cumsum(1 - p) - (1 - p)
        area = (p * (below + (1 - p) / 2)).sum() / (p.sum() * (1 - p).sum())
        assert abs(float(exact.auc) - area) < 1e-12
        assert abs(float(exact.ctr) - p.mean()) < 1e-12


def test_delays_are_those_that_the_truth_counts_with() -> None:
    times: dict[str, dict[str, float]] = {"impression": {}, "click": {}}
    for line in lines(JoinedSimulation(Simulation(60_000))):
        if b'"kind":"' in line and line.endswith(b'"}') and line.count(b"{") == 1:
            event: dict[str, Any] = json.loads(line.replace(b"\xff", b"?"))
            at_s = datetime.fromisoformat(event["ts"]).timestamp() if "ts" in event else 0.0
            times.get(event["kind"], {})[str(event.get("request_id"))] = at_s
    shown, clicks = times["impression"], times["click"]
    delays = [clicks[id_] - shown[id_] for id_ in clicks.keys() & shown.keys()]
    assert len(delays) > 1000 and min(delays) >= 1 and max(delays) < 2048
    for window_s in (30, 60, 300):
        share = sum(delay < window_s for delay in delays) / len(delays)
        true = float(share_within(window_s))
        assert abs(share - true) < 4 * sqrt(true * (1 - true) / len(delays)) + 0.005
    whole, cut = Simulation(9).truth(), JoinedSimulation(Simulation(9)).truth(300)
    assert cut["control"].ctr == whole["control"].ctr * share_within(300)
    assert cut["treatment"].auc < whole["treatment"].auc
    assert JoinedSimulation(Simulation(9)).truth(2048) == whole


def test_events_are_broken_in_every_way_and_json_and_csv_hold_the_same() -> None:
    of_columns = ["not_a_number", "wrong_type", "missing_field", "unknown_variant", "bad_time"]
    of_json = ["not_json", "two_documents", "invalid_utf8", "not_an_object", *of_columns]
    formats: tuple[Format, ...] = ("jsonl", "csv")
    for format, reasons in zip(
        formats, (of_json, ["not_csv", "invalid_utf8", *of_columns]), strict=True
    ):
        simulation = Simulation(events=1, format=format)
        (line,), header = lines(simulation), simulation.header()
        fields = None if header is None else tuple(header.decode().split(","))
        broken = chunk([fault(line) for fault in _FAULTS[format]], fields=fields)
        decoded = Decoder(config(**SIMULATED)).decode(broken)
        assert [refusal.reason for refusal in decoded.refused] == reasons
        assert len(decoded.at) == 1  # a label of 2, which metrics refuse
    (plain,) = lines(Simulation(1))
    event = {name: str(value) for name, value in json.loads(plain).items()}
    assert fields is not None
    assert dict(zip(fields, line.decode().split(","), strict=True)) == event
