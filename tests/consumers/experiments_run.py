"""A store with two experiments that have names, and one without, and runs of it in this process."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

from tests.consumers.experiment_run import run
from tests.consumers.small_config import head

NAMES: Final = ("ranker", "pricing")
EXPERIMENTS: Final = """\
[experiment]
control = "old"
decision = ["ctr"]
mde = 0.05
[experiments.ranker]
name = "The ranker"
hypothesis = "More clicks."
days = 14
variants = ["old", "new"]
control = "old"
decision = ["ctr"]
guardrails = [{ metric = "slow", margin = 0.5 }]
metrics = ["slow"]
where = { surface = "search" }
mde = 0.05
[experiments.pricing]
variants = { full = ["full"], cheap = ["low", "lowest"] }
shares = { full = 1, cheap = 2 }
control = "full"
decision = ["ctr"]
mde = 0.05
start = 1970-01-01T00:30:00Z
"""
CONFIG: Final = (
    head("clicks.jsonl", fields='label = "label"\nassignments = "exps"')
    + """\
[metrics]
ctr = { type = "Ratio", better = "higher" }
slow = { type = "Ratio", inputs = { numerators = "slow" }, better = "lower" }
"""
)


def write(folder: Path, experiments: str = EXPERIMENTS, rows: int = 2000) -> Path:
    """The config, and events of an hour and a half: 1 in 2 of `new` clicks, 1 in 4 of `old`. The
    arms of the pricing do nothing, and one event in twenty names one that is not declared."""
    rng = random.Random(1)
    lines = []
    for i in range(rows):
        ms = i * 5_400_000 // rows
        variant, label = ("new", i // 2 % 2) if i % 2 else ("old", i // 2 % 4 == 0)
        minute, rest = divmod(ms, 60_000)
        ts = f"1970-01-01T{minute // 60:02d}:{minute % 60:02d}:{rest / 1000:06.3f}Z"
        price = "free" if i % 20 == 0 else rng.choice(["full", "low", "lowest"])
        event = {
            "ts": ts,
            "variant": variant,
            "user": f"u{i // 2}-{variant}",
            "label": int(label),
            "slow": int(rng.random() < 0.1),
            "surface": rng.choice(["search", "home"]),
            "exps": {"ranker": variant, "pricing": price},
        }
        lines.append(json.dumps(event))
    (folder / "clicks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return configure(folder, experiments)


def configure(folder: Path, experiments: str) -> Path:
    """The config with these experiments."""
    path = folder / "clicks.toml"
    path.write_text(CONFIG + experiments, encoding="utf-8")
    return path


def make(folder: Path) -> Path:
    """The store."""
    return run(write(folder))
