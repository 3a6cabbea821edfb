"""[hooks]: what is read, and each mistake with its four parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.many_experiments import EVENTS, entries
from tests.consumers.small_config import METRICS, config

GOOD = '[hooks.flags]\nurl = "https://x.example/y?t=1"\non = ["worse"]\nsecret_env = "SECRET"\n'
HIDDEN = "a secret of 20 bytes"


def read(text: str) -> tuple[HookConfig, ...]:
    """The hooks of a config with two experiments."""
    rest = entries(["plain", "three"]) + text
    return config(event=EVENTS, metrics=METRICS, rest=rest).hooks


def test_a_hook_has_its_name_its_host_and_defaults() -> None:
    (hook,) = read(GOOD)
    assert (hook.name, hook.host, hook.on, hook.experiments) == (
        "flags", "x.example", ("worse",), ("*",),
    )  # fmt: skip
    assert "t=1" not in repr(hook)


def test_it_takes_its_events_of_its_experiments() -> None:
    (hook,) = read(GOOD + 'experiments = ["three"]')
    assert hook.takes("worse", "three")
    assert not hook.takes("worse", "plain")
    assert not hook.takes("recommendation", "three")
    (hook,) = read(GOOD)
    assert hook.takes("worse", "")


def test_hooks_change_no_hash_and_no_fingerprint() -> None:
    rest = entries(["plain"])
    plain = config(event=EVENTS, metrics=METRICS, rest=rest)
    hooked = config(event=EVENTS, metrics=METRICS, rest=rest + GOOD)
    assert (plain.hash, plain.fingerprints()) == (hooked.hash, hooked.fingerprints())


@pytest.mark.parametrize(
    ("old", "new", "where", "expected"),
    [
        ('"https:', '"ftp:', "url", "an address of http or https"),
        ("x.example", "user:password@x.example", "url", "an address of http or https"),
        ("x.example", "", "url", "an address of http or https"),
        ("x.example", "x.example:99999", "url", "an address of http or https"),
        ("x.example", "x example", "url", "an address of http or https"),
        ("?t=1", "#t", "url", "an address of http or https"),
        ("?t=1", "?" + "t" * 2000, "url", "an address of http or https"),
        ('["worse"]', '["bad"]', "on", "a list of different events"),
        ('["worse"]', '["worse", "worse"]', "on", "a list of different events"),
        ('["worse"]', "[]", "on", "a list of different events"),
        ('on = ["worse"]', "", "on", "a list of events"),
        ('secret_env = "SECRET"', "", "secret_env", "secret_env or secret_file"),
        ('env = "SECRET"', 'env = "A"\nsecret_file = "b"', "secret_env", "secret_env or"),
        ('on =', 'experiments = ["other"]\non =', "experiments", "an experiment of the config"),
        ('on =', 'experiments = ["*", "plain"]\non =', "experiments", '["*"] alone, or names'),
        ('on =', "max_retry_s = 0.5\non =", "max_retry_s", "at least retry_s = 1"),
        ('on =', "timeout_s = 600\non =", "timeout_s", "a number of seconds from 0.1 to 60"),
        ('["worse"]', '["store_stalled"]\nstalled_s = 10', "stalled_s", "more than twice [store]"),
        ('on =', "ons = 1\non =", "ons", "a known key"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_and_no_address_is_shown(
    old: str, new: str, where: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace(old, new))
    (problem,) = caught.value.problems
    assert problem.where == f"[hooks.flags] {where}"
    assert problem.expected.startswith(expected)
    assert "password" not in problem.got


def test_a_name_fits_into_addresses_and_there_are_at_most_a_hundred() -> None:
    with pytest.raises(ConfigError, match="a name of 1 to 64 letters"):
        read(GOOD.replace("hooks.flags", 'hooks."a b"'))
    with pytest.raises(ConfigError, match="at most 100, got 101"):
        read("".join(GOOD.replace("flags", f"h{i}") for i in range(101)))


def test_a_secret_is_read_of_the_environment_or_of_a_file(tmp_path: Path) -> None:
    (hook,) = read(GOOD)
    assert hook.secret({"SECRET": HIDDEN}) == HIDDEN.encode()
    file = tmp_path / "secret"
    file.write_text(f"{HIDDEN}\n", encoding="utf-8")
    (hook,) = read(GOOD.replace('secret_env = "SECRET"', f'secret_file = "{file}"'))
    assert hook.secret({}) == HIDDEN.encode()


@pytest.mark.parametrize("value", ["", "short", "x" * 2000])
def test_a_secret_that_is_missing_short_or_long_is_refused_and_not_shown(
    value: str, tmp_path: Path
) -> None:
    (hook,) = read(GOOD)
    file = tmp_path / "secret"
    file.write_text(value, encoding="utf-8")
    (of_file,) = read(GOOD.replace('secret_env = "SECRET"', f'secret_file = "{file}"'))
    for candidate, environ in ((hook, {"SECRET": value}), (of_file, {})):
        with pytest.raises(ConfigError, match="expected a secret of 16 to 1024 bytes") as caught:
            candidate.secret(environ)
        assert not value or value not in str(caught.value)
    file.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        of_file.secret({})
