"""Three experiments in one stream: the same bytes for ever, and effects that are what it says."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from streammetrics_consumers.cli.demo_configs import EXPERIMENTS_CONFIG
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.simulate.experiments_simulation import (
    ARMS,
    FAULTS,
    USERS,
    ExperimentsSimulation,
    arms_of,
    true_rates,
)

from tests.consumers.small_config import chunk

EVENTS: Final = 200_000  # as in the demonstration


def lines(simulation: ExperimentsSimulation) -> list[bytes]:
    return [line for batch in simulation.batches() for line in batch]


def is_good(line: bytes) -> bool:
    """Whether no fault changed this event."""
    if line.count(b"{") != 2 or not line.endswith(b'"}') or b"\xff" in line:
        return False
    event = json.loads(line)
    score, time = event["score"], event["ts"]
    return event["label"] in (0, 1) and score == score and score != "high" and time.endswith("Z")


def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    events = lines(ExperimentsSimulation(20_000, 7))
    digest = hashlib.sha256(b"\n".join(events)).hexdigest()
    assert digest == "0b1bd026f442d54663f8ad980226adbe33d8fe3ae1be145217fbea032aa48250"
    for n in (0, 1, 9_005):
        assert lines(ExperimentsSimulation(n, 7)) == events[:n]
    assert lines(ExperimentsSimulation(5, 2)) != events[:5]


def test_settings_out_of_range_are_refused() -> None:
    for items in (0, 65):
        with pytest.raises(ValueError, match="items must be 1 to 64"):
            ExperimentsSimulation(items=items)
    with pytest.raises(ValueError, match="at least 0"):
        ExperimentsSimulation(events=-1)
    with pytest.raises(ValueError, match=r"expected --format jsonl, ndjson, array, .* got csv"):
        ExperimentsSimulation(format="csv")


def test_the_items_of_a_request_are_a_ranked_list_of_one_user_with_one_bounce() -> None:
    events = [json.loads(line) for line in lines(ExperimentsSimulation(3_000, 7)) if is_good(line)]
    requests: dict[str, list[dict[str, object]]] = {}
    for event in events:
        requests.setdefault(event["list"], []).append(event)
    assert len(requests) == 300 and len(events) > 2_980
    for request in requests.values():
        for field in ("user", "ts", "bounced", "experiments", "segment"):
            assert all(event[field] == request[0][field] for event in request)
        assert len({event["item"] for event in request}) == len(request)
        scores = [float(str(event["score"])) for event in request]
        assert scores == sorted(scores, reverse=True)
        positions = [int(str(event["position"])) for event in request]
        assert positions == sorted(positions)


def test_the_effects_of_the_events_are_the_true_ones() -> None:
    """By plain sums over users, who are the units: a ratio of two sums, and its variance."""
    totals = np.zeros((4, USERS))  # events, clicks, requests, bounces
    assigned = np.full((len(ARMS), USERS), -1)
    for line in filter(is_good, lines(ExperimentsSimulation(EVENTS, 3))):
        event = json.loads(line)
        user, is_first = int(event["user"][1:]), event["position"] == 1
        totals[:, user] += 1, event["label"], is_first, is_first * event["bounced"]
        arms = [names.index(event["experiments"][name]) for name, names in ARMS.items()]
        assert set(assigned[:, user]) == {-1} or assigned[:, user].tolist() == arms
        assigned[:, user] = arms
    differing = {}
    for (name, truth), arms_of_users in zip(true_rates().items(), assigned, strict=True):
        control, treatment = (truth[arm] for arm in ARMS[name])
        differing[name] = (
            treatment.ctr > control.ctr,
            treatment.bounce_rate > control.bounce_rate,
        )
        for true, (rows, hits) in (
            (treatment.ctr - control.ctr, totals[:2]),
            (treatment.bounce_rate - control.bounce_rate, totals[2:]),
        ):
            before, after = (
                ratio_with_variance(hits[arms_of_users == arm], rows[arms_of_users == arm])
                for arm in (0, 1)
            )
            error = sqrt(before[1] + after[1])
            assert abs(after[0] - before[0] - float(true)) < 4 * error
            assert true == 0 or true > 5 * error  # so large that a test finds it
    assert differing == {
        "ranker": (True, False),
        "autoplay": (True, True),
        "placebo": (False, False),
    }


def ratio_with_variance(
    hits: NDArray[np.float64], rows: NDArray[np.float64]
) -> tuple[float, float]:
    ratio = hits.sum() / rows.sum()
    return ratio, ((hits - ratio * rows) ** 2).sum() / rows.sum() ** 2


def test_users_are_assigned_to_the_experiments_independently() -> None:
    for seed in (1, 2):
        arms = np.stack([arms_of(name, seed) for name in ARMS])
        for cell in product((0, 1), repeat=len(ARMS)):
            n = int((arms == np.array(cell)[:, np.newaxis]).all(axis=0).sum())
            assert abs(n - USERS / 8) < 4 * sqrt(USERS * 7 / 64)
    assert not np.array_equal(arms_of("ranker", 1), arms_of("ranker", 2))


def test_events_are_broken_in_every_way(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text(EXPERIMENTS_CONFIG, encoding="utf-8")
    (line,) = lines(ExperimentsSimulation(1))
    decoded = Decoder(load_config(path)).decode(chunk([fault(line) for fault in FAULTS]))
    assert [event.reason for event in decoded.refused] == [
        *("not_json", "two_documents", "invalid_utf8", "not_an_object"),
        *("not_a_number", "wrong_type", "bad_time"),
    ]
    assert len(decoded.at) == 1  # a label of 2, which metrics refuse
