"""What can be known of consumers/compose.yaml without Docker."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from streammetrics_consumers.cli.arguments import parse
from streammetrics_consumers.config.config import load_config

TEXT = (Path(__file__).parents[1] / "consumers/compose.yaml").read_text()


def test_its_config_is_one(tmp_path: Path) -> None:
    path = tmp_path / "clicks.toml"
    path.write_text(textwrap.dedent(TEXT.split("content: |\n")[1]))
    made = load_config(path)
    assert (made.source.kind, made.source.topics) == ("kafka", ("events",))
    assert made.store.url.startswith("postgresql://streammetrics@postgres/")


def test_its_commands_are_ours() -> None:
    commands = [" ".join(found.split()) for found in re.findall(r"streammetrics (\w.*)", TEXT)]
    asked = [command.split() for command in commands if command.split()[0] in ("run", "simulate")]
    assert [words[0] for words in asked] == ["simulate", "run"]
    for words in asked:
        parse(words, {})
