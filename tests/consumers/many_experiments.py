"""Many experiments over one stream: a config with twenty of them, and events of their users."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Final

from tests.consumers.small_config import EVENT, METRICS

EVENTS: Final = f'{EVENT}\nassignments = "exps"\n'
DECIDES: Final = 'control = "a"\ndecision = ["ctr"]\nmde = 0.1\n'
TWO: Final = 'variants = ["a", "b"]\n'
START, END = "2024-01-01T00:40:00Z", "2024-01-01T02:10:00Z"

# By name: the keys of each experiment besides those of its decision.
KEYS: Final[dict[str, str]] = {
    "plain": TWO,
    "three": 'variants = ["a", "b", "c"]\n',
    "merged": 'variants = { a = ["a"], both = ["b", "c"] }\ninteractions = true\n',
    "renamed": 'variants = { a = ["x"], new = ["b"] }\n',
    "bounded": f"{TWO}start = {START}\nend = {END}\n",
    "begun": f'{TWO}start = "{START}"\ninteractions = true\n',
    "ending": f"{TWO}end = {END}\n",
    "searches": f'{TWO}where = {{ surface = "search" }}\ninteractions = true\n',
    "elsewhere": f'{TWO}where = {{ surface = ["home", "absent"], "client.app" = "present" }}\n',
    "without": f'{TWO}where = {{ "client.app" = "absent" }}\ninteractions = true\n',
    "numbers": f"{TWO}where = {{ version = [7, 8] }}\n",
    "sessions": f'{TWO}unit = "session"\n',
    "devices": f'{TWO}unit = "client.device"\ncluster = "none"\n',
    "rows": f'{TWO}unit = "session"\ncluster = "none"\n',
    "ramped": f'{TWO}epochs = ["{START}", "{END}"]\n',
    "field": f'{TWO}variant = "arms.of_field"\n',
    "of_event": 'variant = "variant"\n',
    "shares": f"{TWO}shares = {{ a = 3, b = 1 }}\nunit_share = 0.5\n",
    "further": f'{TWO}metrics = ["auc"]\n',
    "guarded": f'{TWO}guardrails = [{{ metric = "auc", margin = 0.1 }}]\n',
}


def entries(names: Sequence[str] = tuple(KEYS)) -> str:
    """The entries of [experiments]."""
    return "\n".join(f"[experiments.{name}]\n{DECIDES}{KEYS[name]}" for name in names)


def parts(*names: str) -> dict[str, str]:
    """The parts of the small config that has these experiments; all by default."""
    return {"event": EVENTS, "metrics": METRICS, "rest": entries(names or tuple(KEYS))}


WRONG: Final[tuple[Any, ...]] = (None, {}, {"arm": "a"}, ["a"], [], 0.5, True, "", "z" * 2000)


def rows(seed: int, n: int = 240) -> list[dict[str, Any]]:
    """Events over three hours of twenty users, some of which lack any field that no metric needs,
    or have a value there that cannot be used."""
    rng = random.Random(seed)
    return [_row(rng, i * 180 // n) for i in range(n)]


def _row(rng: random.Random, minute: int) -> dict[str, Any]:
    def value(good: Any, wrong: float = 0.1) -> Any:
        return rng.choice(WRONG) if rng.random() < wrong else good

    row: dict[str, Any] = {
        "ts": f"2024-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z",
        "variant": rng.choice("ab"),
        "user": f"u{rng.randrange(20)}",
        "label": int(rng.random() < 0.3),
        "score": rng.randrange(20) / 20,
        "phase": "fit",
        "exps": value({name: value(rng.choice("abcx")) for name in KEYS if rng.random() < 0.8}),
        "arms": value({"of_field": rng.choice(["a", "b"])}),
        "surface": value(rng.choice(["search", "home"])),
        "client": value({"app": value("android"), "device": value(f"d{rng.randrange(9)}")}),
        "session": value(f"s{rng.randrange(40)}"),
        "version": value(rng.choice([7, 8, 9, "7", 8.0])),
    }
    for name in ("exps", "arms", "surface", "client", "session", "version"):
        if rng.random() < 0.1:
            del row[name]
    return row


def events(seed: int, n: int = 240) -> list[bytes | None]:
    """The same as JSON."""
    return [json.dumps(row).encode() for row in rows(seed, n)]
