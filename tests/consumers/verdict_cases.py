"""A small store for each thing that an experiment may say, to show on every surface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main

from tests.consumers.small_config import head

CONFIG: Final = (
    head("events.jsonl", fields='time_unit = "ms"')
    + """\
[metrics]
ctr = {{ type = "Ratio", {better}inputs = {{ numerators = "click" }} }}
stay = {{ type = "Ratio", inputs = {{ numerators = "stay" }} }}
[experiment]
control = "old"
decision = ["ctr"]
unit = "user"
cluster = "{cluster}"
mde = 0.05
on_several_variants = "keep"
{rest}
"""
)
HIGHER: Final = 'better = "higher", '
GUARDED: Final = 'guardrails = [{ metric = "stay", margin = 0.1 }]'
START_MS: Final = 1_700_000_000_000 // 3_600_000 * 3_600_000


@dataclass(frozen=True, slots=True)
class Case:
    """clicks, stays: of twenty users of (old, new); users: of each arm; both: the share of users,
    in twentieths, that see both arms; again: whether every other user of new has two events, in
    groups of users. says: the verdicts in order; action: the recommendation."""

    says: tuple[str, ...]
    action: str
    rest: str = ""
    better: str = HIGHER
    clicks: tuple[int, int] = (5, 5)
    stays: tuple[int, int] = (18, 18)
    users: tuple[int, int] = (2000, 2000)
    both: int = 0
    again: bool = False


CASES: Final = {
    "win": Case(("better",), "ship", clicks=(5, 10)),
    "loss": Case(("worse",), "do_not_ship", clicks=(10, 4)),
    "kept": Case(("better", "kept"), "ship", GUARDED, clicks=(5, 10)),
    "broken": Case(("better", "broken"), "do_not_ship", GUARDED, clicks=(5, 10), stays=(18, 10)),
    "ratio": Case(("disbelieved",), "check_setup", clicks=(5, 10), users=(3000, 1000)),
    "mixed": Case(("better",), "check_setup", clicks=(5, 10), both=1),
    "early": Case(("not_started",), "wait", clicks=(5, 10), users=(20, 20)),
    "none": Case(("no_difference_yet",), "wait", users=(1000, 1000)),
    "rows": Case(("higher",), "decide", clicks=(5, 10), again=True),
    "undirected": Case(("higher",), "decide", better="", clicks=(5, 10)),
}


def events(case: Case) -> Iterator[dict[str, object]]:
    """An event of each user; users of both arms have two, and some of new if `again`."""
    for arm, variant in enumerate(("old", "new")):
        for i in range(case.users[arm]):
            shared = i % 20 < case.both
            event: dict[str, object] = {
                "ts": START_MS + i,
                "variant": variant,
                "user": f"both-{i}" if shared else f"{variant}-{i}",
                # 7 and 20 have no common divisor: every twenty users are all of them
                "click": int(7 * i % 20 < case.clicks[arm]),
                "stay": int(3 * i % 20 < case.stays[arm]),
            }
            yield from [event] * (2 if case.again and arm and i % 2 else 1)


def write(folder: Path, case: Case) -> Path:
    """The events and the config."""
    lines = (json.dumps(event) for event in events(case))
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "config.toml"
    cluster = "groups" if case.again else "none"
    text = CONFIG.format(better=case.better, rest=case.rest, cluster=cluster)
    path.write_text(text, encoding="utf-8")
    return path


def store(folder: Path, case: Case) -> Path:
    """The store, counted to the end."""
    assert main(["run", str(write(folder, case)), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"
