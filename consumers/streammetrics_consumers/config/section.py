"""Reading one table of a config file so that one error can list every bad setting.

A `Section` has the raw value of each key, and records problems, so that reading continues (see
keys.py). A key that nothing reads is unknown, and gets a "did you mean". A table or a list that is
the value of a key is a section too, see `entry`, `entries` and `elements`; `each` reads all that is
in it, but for what is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, TypeVar

from streammetrics_consumers.model.paths import is_path

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_A_NAME: Final = "a name of 1 to 64 letters, digits, - and _"
MANY: Final = 1 << 30  # more than the elements of a list
ALL_KEYS: Final = "*"  # among the secret ones
_KINDS: Final = {dict: "a table", list: "a list", str: "a text", bool: "true or false"}

T = TypeVar("T")
Value = str | int | float | bool


class Override(NamedTuple):
    """A value from outside of the file, and the name under which the user set it (`--port`)."""

    value: Value
    where: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad setting: its location, the expected and the actual value, and a hint."""

    where: str
    expected: str
    got: str
    hint: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, got {self.got}; {self.hint}"


class RefusedSetting(Exception):
    """Ends the reading of a value or an entry; its problem is recorded."""


class ConfigError(Exception):
    """An unusable config. `problems` holds every bad setting, not only the first."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        if [problem.where for problem in problems] == [path]:
            super().__init__(str(problems[0]))  # the file itself
            return
        count = "1 bad setting" if len(problems) == 1 else f"{len(problems)} bad settings"
        super().__init__("\n".join([f"{path}: {count}", *(f"  {p}" for p in problems)]))


def shown(value: object, limit: int = 60) -> str:
    """A value as text for a message, cut to `limit` characters."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def kind_shown(value: object) -> str:
    """What a value is, for a message that must not show it: a part of it may be a secret."""
    return "nothing" if value is None else _KINDS.get(type(value), "a number or a time")


def did_you_mean(name: str, known_names: Sequence[str], otherwise: str = "") -> str:
    """The hint for an unknown name. otherwise: the hint if no known name is similar."""
    close = difflib.get_close_matches(name, known_names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return otherwise or "remove it; known: " + ", ".join(
        f"`{name}`" for name in sorted(known_names)
    )


class Section:
    """One table of the file or of another table, or a list of it, and the overrides of its keys."""

    def __init__(
        self,
        name: str,
        table: object,
        problems: list[Problem],
        overrides: Mapping[str, Override] | None = None,
        source: str = "",
        secrets: Collection[str] = (),
    ) -> None:
        """source: the kind of source whose events the paths in this table refer to. secrets: the
        keys whose values no message shows."""
        self.name = name
        self.title, self.place = f"[{name}]", f"[{name}] "  # of itself, and before its keys
        self.problems, self.source, self.secrets = problems, source, secrets
        self.lacking = set[str]()  # keys without a good value
        self.asked: list[str] = []
        self.overrides = overrides or {}
        if not isinstance(table, dict):
            hint = f"write {self.title} on a separate line"
            got = kind_shown(table) if secrets else shown(table)
            self.problems.append(Problem(self.title, "a table", got, hint))
            table = {}
        self.table: dict[str, object] = table

    def inner(
        self,
        title: str,
        table: Mapping[str, object],
        between: str = ".",
        secrets: Collection[str] = (),
    ) -> Section:
        """A table in this one, with its name in messages, and what stands before that of a key."""
        section = Section("", dict(table), self.problems, source=self.source, secrets=secrets)
        section.title, section.place = title, f"{title}{between}"
        return section

    def entry(self, key: str, hint: str, expected: str = "a table") -> Section:
        """The table that is the value of a key, as in `[metrics] auc.type`; another value is
        refused."""
        value = self.raw(key)
        if not isinstance(value, dict):
            self.refuse(key, expected, hint)
        return self.inner(self.where(key), value)

    def entries(self, key: str, expected: str, hint: str) -> Section:
        """The same of an optional table: one without entries if it is absent or refused."""
        if self.raw(key) is not None:
            with suppress(RefusedSetting):
                return self.entry(key, hint, expected)
        return self.inner(self.where(key), {})

    def elements(
        self, key: str, expected: str, hint: str, *, least: int = 0, most: int = MANY
    ) -> Section:
        """The list that is the value of a key, with the keys `[0]`, `[1]` and so on, as in
        `[slices] by[0]`; one without elements if it is absent or refused."""
        value = self.raw(key)
        if value is None and not least:
            value = []
        if not isinstance(value, list) or not least <= len(value) <= most:
            self.bad(key, expected, hint)
            value = []
        table = {f"[{i}]": element for i, element in enumerate(value)}
        return self.inner(self.where(key), table, between="")

    def each(self, read: Callable[[Section, str], T], most: int | None = None) -> Iterator[T]:
        """What `read` makes of each key, or of the first `most`, but for those that it refuses."""
        for key in list(self.table)[:most]:
            try:
                value = read(self, key)
            except RefusedSetting:
                continue
            yield value

    def where(self, key: str) -> str:
        """The name of a key in messages."""
        override = self.overrides.get(key)
        return override.where if override else f"{self.place}{key}"

    def problem(self, where: str, expected: str, got: object, hint: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(where, expected, shown(got), hint))

    def unknown(self, where: str, expected: str, got: object, known_names: Sequence[str]) -> None:
        """Record an unknown name as a problem."""
        self.problem(where, expected, got, did_you_mean(str(got), known_names))

    def bad(self, key: str, expected: str, hint: str) -> None:
        """Record a problem with the value of `key`."""
        got = self._shown(key, self.raw(key))
        self.problems.append(Problem(self.where(key), expected, got, hint))

    def refuse(self, key: str, expected: str, hint: str) -> NoReturn:
        """Record a problem with the value of `key`, and end its reading."""
        self.bad(key, expected, hint)
        raise RefusedSetting

    def require_name(self, key: str, hint: str = "rename it") -> None:
        """Refuse an entry whose name does not fit into those of metrics, paths and addresses."""
        if not _NAME.fullmatch(key):
            self.raw(key)
            self.problem(self.where(key), _A_NAME, key, hint)
            raise RefusedSetting

    def raw(self, key: str) -> object:
        """The raw value of a key, None if it is not set."""
        if key not in self.asked:
            self.asked.append(key)
        override = self.overrides.get(key)
        return override.value if override else self.table.get(key)

    def require_good(self, *keys: str) -> None:
        """End the reading of this table if the value of one of these keys was refused."""
        if any(key in self.lacking and self.raw(key) is not None for key in keys):
            raise RefusedSetting

    def is_flag(self, key: str) -> bool:
        """Whether the value of a key is from outside of the file, where numbers may be texts."""
        return key in self.overrides

    def takes_path(
        self, where: str, value: object, expected: str = "a dotted path in an event"
    ) -> bool:
        """Whether this is a dotted path. Records a problem if it is not, or if the source cannot
        have it.

        Only Kafka records have a key and headers. In a file, `key.NAME` and `header.NAME` are
        errors: if they were fields of the event, the config would change its meaning, and silently
        its results, once the events come from Kafka.
        """
        if not is_path(value):
            self.problem(where, expected, value, "name the field")
            return False
        first, dot, _ = str(value).partition(".")
        if self.source != "kafka" and dot and first in ("key", "header"):
            hint = f"only Kafka records have a {first}, and the source is of kind {self.source}"
            self.problem(where, "a path in the event", value, f"{hint}; name a field of the event")
        elif self.source == "kafka" and value == "header":
            self.problem(where, "header.NAME", value, "name the header of the record")
        return True

    def done(self, place: str = "") -> None:
        """Record a problem for every key that was not read. place: in place of the usual one."""
        for key in self.table:
            if key not in self.asked:
                self.unknown(f"{place or self.place}{key}", "a known key", key, self.asked)
        for key, override in self.overrides.items():
            if key not in self.asked:
                expected = "a setting that applies here"
                got, hint = self._shown(key, override.value), "leave it out for this config"
                self.problems.append(Problem(override.where, expected, got, hint))

    def _shown(self, key: str, value: object) -> str:
        names = {ALL_KEYS, key.partition(".")[0]}  # flags of the client are `client.key`
        return shown(value) if names.isdisjoint(self.secrets) else kind_shown(value)
