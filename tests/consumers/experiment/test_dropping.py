"""Users of several variants are dropped from what is read, and from nothing that is stored."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import Results
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.experiment_run import CONFIG, run

METRICS = 'ctr = {{ type = "Ratio" }}\ngauc = {{ type = "GroupedAUC" }}'
EVENT = 'user = "user"\nscore = "score"'
BOTH = ("u3", 7)  # users of both variants: a text, and a number


def answered(folder: Path, cluster: str, word: str, *, with_both: bool) -> Results:
    """What results say of forty users, of whom two may be in both variants."""
    lines = []
    for i in range(800):
        user: str | int = f"u{i % 40}" if i % 40 != 7 else 7
        both = user in BOTH
        if both and not with_both:
            continue
        variant = ("old", "new")[(i // 40 if both else i) % 2]
        event = {"ts": f"1970-01-01T00:{i // 20:02d}:00Z", "variant": variant, "user": user}
        lines.append(json.dumps({**event, "label": i // 40 % 3 % 2, "score": i * 37 % 101 / 101}))
    folder.mkdir()
    (folder / "clicks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = CONFIG.replace('ctr = {{ type = "Ratio", better = "higher" }}', METRICS).replace(
        'user = "user"', EVENT
    )
    text = text.replace('decision = ["ctr"]', 'decision = ["gauc"]')
    plan = f'mde = 0.05\ncluster = "{cluster}"\non_several_variants = "{word}"'
    config = folder / "clicks.toml"
    config.write_text(text.format(experiment=plan), encoding="utf-8")
    with closing(Ledger.open(str(run(config)))) as ledger:
        return read_results(ledger, Query())


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["groups", "none"])
def test_they_count_as_if_they_had_never_come(tmp_path: Path, cluster: str) -> None:
    dropped = answered(tmp_path / "dropped", cluster, "drop", with_both=True)
    kept = answered(tmp_path / "kept", cluster, "keep", with_both=True)
    clean = answered(tmp_path / "clean", cluster, "keep", with_both=False)
    (mine,), (theirs,), (all_,) = (
        [repr(replace(row, sentence="")) for row in one.comparisons]
        for one in (dropped, clean, kept)
    )
    assert mine == theirs and mine != all_
    mixed = dropped.contamination
    assert mixed is not None and (mixed.units, mixed.share, mixed.dropped) == (2.0, 0.05, True)
    assert "2 units have been seen in several variants, 5 % of all, and are dropped." in (
        dropped.comparisons[0].sentence
    )
    rows = [(row.metric, row.value, row.digest) for row in dropped.rows]
    assert rows == [(row.metric, row.value, row.digest) for row in kept.rows]
