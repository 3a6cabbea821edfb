"""A store of three experiments over the same users. A new ranker and new prices each help, and
together they do not: the effect of one differs between the arms of the other. `colour` changes
nothing, and meets both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.consumers.experiment_run import run
from tests.consumers.small_config import head

USERS: Final = 4_000
NAMES: Final = ("ranker", "pricing", "colour")
ENTRY: Final = """\
[experiments.{name}]
variants = ["old", "new"]
control = "old"
decision = {decision}
mde = 0.05
interactions = {asked}
"""
HEAD: Final = (
    head("clicks.jsonl", fields='label = "label"\nassignments = "exps"')
    + """\
[metrics]
ctr = { type = "Ratio", better = "higher" }
buyers = { type = "UnitRate", inputs = { values = "label" } }
loss = { type = "Calibration", inputs = { scores = "score" } }
"""
)


def entries(decision: str = '["ctr"]', experiments: Iterable[str] = NAMES) -> str:
    """The tables of the experiments; experiments: those with `interactions`."""
    names = set(experiments)
    return "".join(
        ENTRY.format(name=name, decision=decision, asked=str(name in names).lower())
        for name in NAMES
    )


def write(folder: Path, tables: str, *, joint_rate: float = 0.2, users: int = USERS) -> Path:
    """The config with these tables, and two events of each user; joint_rate: the share of
    clicks in both treatments, without an interaction 0.6."""
    rng = random.Random(1)
    arms = [{name: rng.choice(["old", "new"]) for name in NAMES} for _ in range(users)]
    lines = []
    for i in range(2 * users):
        second, user = i * 5_400 // (2 * users), i % users
        is_new = arms[user]["ranker"] == "new", arms[user]["pricing"] == "new"
        rate = joint_rate if all(is_new) else 0.2 + 0.2 * sum(is_new)
        event = {
            "ts": f"1970-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z",
            "variant": "old",
            "user": f"u{user}",
            "label": int(rng.random() < rate),
            "score": 0.5,
            "exps": arms[user],
        }
        lines.append(json.dumps(event))
    folder.mkdir(exist_ok=True)
    (folder / "clicks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return configure(folder, tables)


def configure(folder: Path, tables: str) -> Path:
    """The config with these tables."""
    path = folder / "clicks.toml"
    path.write_text(HEAD + tables, encoding="utf-8")
    return path


def make(folder: Path, tables: str = entries(), *, joint_rate: float = 0.2) -> Path:
    """The store."""
    return run(write(folder, tables, joint_rate=joint_rate))
