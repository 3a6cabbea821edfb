from __future__ import annotations

from importlib.util import find_spec

from tests.requirements import absent


def test_beam_is_in_this_environment() -> None:
    if find_spec("apache_beam") is None:
        absent("beam", "apache_beam is not installed in this environment")
