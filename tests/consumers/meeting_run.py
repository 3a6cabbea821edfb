"""A store of experiments in an hour and a half of events. Three have the same users: `pricing` and
`ranker` exclude each other and do not, `layout` has the arms of `ranker`, and the arms of `pricing`
depend on neither. `banner` has users of its own, as it should."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.consumers.experiment_run import run
from tests.consumers.small_config import head

USERS: Final = 400
OTHERS: Final = 100  # the users of `banner`
NAMES: Final = ("ranker", "pricing", "layout", "banner")
LAYERS: Final = '[layers]\nprices = ["ranker", "pricing"]\nlooks = ["layout", "banner"]\n'
ENTRY: Final = """\
[experiments.{name}]
variants = ["old", "new"]
control = "old"
decision = ["ctr"]
mde = 0.05
"""
HEAD: Final = (
    head("clicks.jsonl", fields='label = "label"\nassignments = "exps"')
    + """\
[metrics]
ctr = { type = "Ratio", better = "higher" }
"""
)


def entries(names: Iterable[str] = NAMES, **lines: str) -> str:
    """The tables of these experiments; lines: further ones of each, by name."""
    return "".join(ENTRY.format(name=name) + lines.get(name, "") for name in names)


def arms_of(user: int, price: str) -> Mapping[str, str]:
    """The arms of a user."""
    half = "new" if user % 2 else "old"
    if user >= USERS:
        return {"banner": half}
    return {"ranker": half, "layout": half, "pricing": price}


def write(folder: Path, tables: str) -> Path:
    """The config with these tables, and two events of each user."""
    users = USERS + OTHERS
    rng = random.Random(1)
    prices = [rng.choice(["old", "new"]) for _ in range(users)]
    lines = []
    for i in range(2 * users):
        second = i * 5_400 // (2 * users)
        user = i % users
        event = {
            "ts": f"1970-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z",
            "variant": "old",
            "user": f"u{user}",
            "account": f"u{user // 2}",
            "label": int(rng.random() < 0.3),
            "exps": arms_of(user, prices[user]),
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


def make(folder: Path) -> Path:
    """The store."""
    return run(write(folder, entries() + LAYERS))
