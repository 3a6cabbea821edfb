import hashlib
import json
from collections import Counter
from math import sqrt

import numpy as np
import pytest
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.simulate.stream import _CLICKS, Format, Simulation

from streammetrics import ExactAUC
from tests.consumers.small_config import LOG, chunk, config

SIMULATED = {
    "event": 'time = "ts"\nvariant = "variant"\nvariants = ["control", "treatment"]\n'
    'user = "user"\nlabel = "label"\nscore = "score"',
    "slices": 'by = [[], ["variant"]]',
    "windows": "size_s = 3600\nlateness_s = 600",
}


def stream(**settings: int | str) -> list[bytes]:
    return [line for batch in Simulation(**settings).batches() for line in batch]  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    digest = hashlib.sha256(b"\n".join(stream(events=20_000, seed=7))).hexdigest()
    assert digest == "6e52431fc67a7644b9766dcfe3ec2b63b379f7f4daf794e4f02a39b473059e0d"


def test_a_longer_stream_begins_with_a_shorter_one() -> None:
    whole = stream(events=10_000)
    for events in (0, 1, 9000):
        assert stream(events=events) == whole[:events]
    assert stream(events=5, seed=2) != whole[:5]


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="users"):
        Simulation(users=1)


@pytest.mark.slow
def test_the_truth_is_what_many_events_come_close_to() -> None:
    simulation = Simulation(events=60_000, seed=3)
    decoder, truth = Decoder(config(**SIMULATED)), simulation.truth()
    auc = {name: ExactAUC() for name in truth}
    for batch in simulation.batches():
        found = decoder.decode(chunk(batch))
        labels = np.asarray(found.columns["label:label"])
        scores = np.asarray(found.columns["score:real"])
        variants = found.keys["variant"]
        for code, name in enumerate(variants.values):
            rows = (variants.codes == code) & (labels <= 1)
            auc[str(name)].update(labels[rows].astype(int), scores[rows])
    # Scores are click probabilities that crowd near 0.
    assert scores.min() > 0 and scores.max() < 0.125 and np.median(scores) < 0.02
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


def test_users_are_heavy_tailed_and_stay_in_one_variant() -> None:
    seen: dict[str, set[str]] = {}
    rows: Counter[str] = Counter()
    for line in stream(events=9_000, seed=2):
        try:
            event = json.loads(line)
            seen.setdefault(event["user"], set()).add(event["variant"])
            rows[event["user"]] += 1
        except (ValueError, KeyError, TypeError):
            continue
    assert sum(len(variants - {"treatmnet"}) > 1 for variants in seen.values()) == 0
    top = sum(n for _, n in rows.most_common(len(rows) // 100))
    assert top > 0.2 * sum(rows.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "kinds"),
    [
        ("jsonl", {"not_json", "two_documents", "invalid_utf8", "not_an_object", "metric",
                   "not_a_number", "wrong_type", "missing_field", "unknown_variant", "bad_time"}),
        ("csv", {"not_csv", "invalid_utf8", "metric", "not_a_number", "wrong_type",
                 "missing_field", "unknown_variant", "bad_time"}),
    ],
)  # fmt: skip
def test_some_events_are_late_and_some_are_broken_in_every_way(
    format: Format, kinds: set[str]
) -> None:
    simulation = Simulation(events=80_000, seed=1, format=format)
    small = config(**SIMULATED)
    delta, decoder, start = Delta(small, LOG, 0), Decoder(small), 0
    header = simulation.header()
    fields = None if header is None else tuple(header.decode().split(","))
    for batch in simulation.batches():
        delta.add(decoder.decode(chunk(batch, start, fields=fields)))
        start += len(batch)
    assert {entry.reason for entry in delta.quarantine} == kinds
    assert 0.0005 < delta.counters.quarantined / start < 0.002
    assert 0.004 < delta.counters.late / start < 0.006


def test_json_and_csv_hold_the_same_events() -> None:
    from_json = json.loads(stream(events=1)[0])
    header = Simulation(events=1, format="csv").header()
    assert header is not None
    values = stream(events=1, format="csv")[0].decode().split(",")
    assert dict(zip(header.decode().split(","), values, strict=True)) == {
        name: str(value) for name, value in from_json.items()
    }
