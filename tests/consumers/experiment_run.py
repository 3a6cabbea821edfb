"""A small experiment: a stream of two variants, its config, and runs of it in this process."""

from __future__ import annotations

import json
from pathlib import Path

from streammetrics_consumers.cli.main import main

from tests.consumers.small_config import head

CONFIG = (
    head("clicks.jsonl", fields='label = "label"')
    + """\
[metrics]
ctr = {{ type = "Ratio", better = "higher" }}
[experiment]
control = "old"
decision = ["ctr"]
{experiment}
"""
)


def write(folder: Path, experiment: str = "mde = 0.05", rows: int = 2000) -> Path:
    """The config, and events of an hour and a half: 1 in 2 of `new` clicks, 1 in 4 of `old`."""
    lines = []
    for i in range(rows):
        ms = i * 5_400_000 // rows
        variant, label = ("new", i // 2 % 2) if i % 2 else ("old", i // 2 % 4 == 0)
        minute, rest = divmod(ms, 60_000)
        ts = f"1970-01-01T{minute // 60:02d}:{minute % 60:02d}:{rest / 1000:06.3f}Z"
        event = {"ts": ts, "variant": variant, "user": f"u{i // 2}-{variant}", "label": int(label)}
        lines.append(json.dumps(event))
    (folder / "clicks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "clicks.toml"
    path.write_text(CONFIG.format(experiment=experiment), encoding="utf-8")
    return path


def run(config: Path) -> Path:
    """Count to the end; the store."""
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return config.with_name("store.db")
