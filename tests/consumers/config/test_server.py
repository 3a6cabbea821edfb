"""[server]: the token is long enough, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers.config.config import load_config
from consumers.config.section import ConfigError
from tests.consumers.stores import write_config

TOKEN = "0123456789abcdef"


def config_with(folder: Path, token: str) -> Path:
    """A config whose [server] has this token, as TOML writes it."""
    path = write_config(folder)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("port = 0\n", f"port = 0\ntoken = {token}\n"), encoding="utf-8")
    return path


def test_a_token_is_taken_and_not_shown(tmp_path: Path) -> None:
    server = load_config(config_with(tmp_path, f'"{TOKEN}"')).server
    assert server.token == TOKEN
    assert TOKEN not in repr(server)
    assert load_config(write_config(tmp_path)).server.token == ""


@pytest.mark.parametrize("token", ["short", "with spaces in the middle", "é" * 20, "a" * 201])
def test_a_weak_token_is_an_error_that_keeps_it_to_itself(tmp_path: Path, token: str) -> None:
    with pytest.raises(ConfigError, match="16 to 200 letters") as refused:
        load_config(config_with(tmp_path, f'"{token}"'))
    assert token not in str(refused.value)
