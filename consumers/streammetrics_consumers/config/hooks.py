"""[hooks]: where events of experiments are sent, and how they are signed.

The secret itself is in no config: it is read of the environment or of a file whenever something is
signed, so that it can be changed while the program runs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from streammetrics_consumers.config.keys import Required, ValueKind, is_complete, key, read
from streammetrics_consumers.config.kinds import FilePath, Real, Seconds, Several, Text, is_text
from streammetrics_consumers.config.section import ConfigError, Problem, Section
from streammetrics_consumers.model.hook_events import EVENTS, STORE_STALLED

MAX_HOOKS: Final = 100
MAX_URL: Final = 2000
ALL: Final = "*"
SECRET_BYTES: Final = (16, 1024)  # the least and the most
_URL: Final = "an address of http or https, such as https://flags.example.com/hooks"
_VISIBLE: Final = frozenset(map(chr, range(ord("!"), ord("~") + 1)))


def _url(section: Section, name: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= MAX_URL and set(value) <= _VISIBLE:
        parts = _split(value)
        if parts is not None and parts.username is None and not parts.fragment:
            return value
    # The message omits the value: a part of it may be a secret.
    section.problem(
        section.where(name), _URL, "another", "write it without a user, a password and a fragment"
    )
    return ""


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None if it is not one of http or https with a host."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return parts if is_good else None


@dataclass(frozen=True, slots=True)
class HookConfig:
    """[hooks.NAME]. `name` is that of the table."""

    url: str = key(
        ValueKind("address of http or https", _url, refused=""),
        Required(_URL, "name the receiver"),
        "the receiver. Redirects are not followed",
        secret=True,
    )
    on: tuple[str, ...] = key(
        Several(
            f"list of {' '.join(f'`{event}`' for event in EVENTS)}",
            lambda value: value in EVENTS,
            f"a list of different events: {', '.join(EVENTS)}",
            'write ["guardrail_broken", "worse"]',
        ),
        Required("a list of events", 'write ["guardrail_broken", "worse"]', ()),
        "the events that are sent, see [circuit_breaker.md](circuit_breaker.md)",
    )
    experiments: tuple[str, ...] = key(
        Several(
            "list of names",
            is_text,
            'a list of different names of experiments, or ["*"]',
            'write ["*"] for all',
        ),
        (ALL,),
        '`["*"]` for all experiments, or the names of some; `""` is that of `[experiment]`',
        shown='`["*"]`',
    )
    secret_env: str | None = key(
        Text(200), None, "the variable of the environment that holds the secret"
    )
    secret_file: Path | None = key(
        FilePath(),
        None,
        "the file that holds the secret, in place of a variable; a newline at its end does not "
        "count. One of the two is required",
    )
    timeout_s: float = key(
        Real(0.1, 60, " of seconds"), 10.0, "how long one attempt may take, from name to answer"
    )
    retry_s: float = key(
        Real(0.01, 3600, " of seconds"),
        1.0,
        "the pause after the first attempt that failed; each further pause is twice as long",
    )
    max_retry_s: float = key(Real(0.01, 86_400, " of seconds"), 300.0, "the longest pause")
    give_up_s: int = key(
        Seconds(1, 366 * 86_400),
        7 * 86_400,
        "how long an event is tried; then it has failed, and stays in the store",
    )
    stalled_s: int = key(
        Seconds(1, 86_400),
        30,
        "of `store_stalled`: how long nothing was committed although there are events; more than "
        "twice `store.commit_interval_s`",
    )
    name: str = ""

    @property
    def host(self) -> str:
        """The host of the receiver, which may be shown; the rest of its address may be secret."""
        return (_split(self.url) or urlsplit("")).hostname or ""

    def takes(self, event: str, experiment: str) -> bool:
        """Whether this event of an experiment is sent here."""
        names = self.experiments
        return event in self.on and (names == (ALL,) or experiment in names)

    def secret(self, environ: Mapping[str, str] = os.environ) -> bytes:
        """The secret that signs. Raises ConfigError without it in the message."""
        where, low, high = self._secret_place, *SECRET_BYTES
        expected = f"a secret of {low} to {high} bytes"
        hint = "generate one, such as with openssl rand -hex 32"
        if self.secret_env is not None:
            value = environ.get(self.secret_env, "").encode("utf-8", "surrogateescape")
            place = f"the variable {self.secret_env}"
        else:
            place = f"the file {self.secret_file}"
            try:
                with open(self.secret_file or "", "rb") as file:
                    value = file.read(high + 3).rstrip(b"\r\n")
            except OSError as error:
                got = f"{place}: {error.strerror}"
                raise ConfigError("the config", [Problem(where, expected, got, hint)]) from None
        if not low <= len(value) <= high:
            got = f"{place} with {'more' if len(value) > high else len(value)} bytes"
            raise ConfigError("the config", [Problem(where, expected, got, hint)])
        return value

    @property
    def _secret_place(self) -> str:
        return f"[hooks.{self.name}] secret_{'file' if self.secret_env is None else 'env'}"


def read_hooks(
    section: Section, experiments: Collection[str], directory: Path, commit_interval_s: float
) -> tuple[HookConfig, ...]:
    """Read [hooks]. experiments: the names of all. A path is relative to `directory`."""
    if len(section.table) > MAX_HOOKS:
        section.problem(section.title, f"at most {MAX_HOOKS}", len(section.table), "leave some out")

    def read_entry(hooks: Section, name: str) -> HookConfig:
        hooks.require_name(name)
        entry = hooks.entry(name, f"write [hooks.{name}] on a separate line")
        table = section.inner(f"[hooks.{name}]", entry.table, between=" ")
        return _read_hook(table, name, experiments, directory, commit_interval_s)

    hooks = tuple(section.each(read_entry, MAX_HOOKS))
    section.done()
    return hooks


def _read_hook(
    table: Section,
    name: str,
    experiments: Collection[str],
    directory: Path,
    commit_interval_s: float,
) -> HookConfig:
    hook = replace(read(table, HookConfig), name=name)
    names = [ALL, *experiments]
    for word in hook.experiments:
        if word not in names:
            table.unknown(table.where("experiments"), "an experiment of the config", word, names)
        elif word == ALL and len(hook.experiments) > 1:
            table.bad("experiments", '["*"] alone, or names', "leave out one of them")
    if is_complete(table, HookConfig) and (hook.secret_env is None) == (hook.secret_file is None):
        got = "neither" if hook.secret_env is None else "both"
        place = table.where("secret_env")
        table.problem(place, "secret_env or secret_file", got, "keep one of them")
    if STORE_STALLED in hook.on and hook.stalled_s <= 2 * commit_interval_s:
        expected = f"more than twice [store] commit_interval_s = {commit_interval_s:g}"
        table.bad("stalled_s", expected, "raise it")
    if hook.max_retry_s < hook.retry_s:
        table.bad("max_retry_s", f"at least retry_s = {hook.retry_s:g}", "raise it")
    if hook.secret_file is None:
        return hook
    return replace(hook, secret_file=directory / hook.secret_file)
