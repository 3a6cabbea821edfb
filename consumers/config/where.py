"""[event] where: which events of a log are meant. The others are skipped, and counted as skipped.

    where = { "exps.e00" = "present", country = ["de", "at"], bot = false }

Each entry names a field, as `[slices] by` does: a role of [event] that has a path, else a dotted
path. All conditions must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from consumers.config.schema import Section, is_path
from consumers.events.columns import MAX_TEXT, plain_text

PRESENT: Final = "present"
ABSENT: Final = "absent"
MAX_CONDITIONS: Final = 32
MAX_VALUES: Final = 1000  # of one field
_EXPECTED: Final = '"present", "absent", a text, a whole number, true or false, or a list of these'
_TODO: Final = (
    'write for instance { "exps.e00" = "present", country = ["de", "at"] }; in a list, "present" '
    'and "absent" are values like any other'
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What one field of an event must be.

    name: as the config names the field; path: where it stands. present: whether it must be there
    and not null. values: the texts that it may have, in order; None where any value will do.
    """

    name: str
    path: str
    present: bool
    values: tuple[str, ...] | None = None

    @property
    def plain(self) -> list[object]:
        """In plain values, as fingerprints hash it: name, path, and what the field must be."""
        word = PRESENT if self.present else ABSENT
        return [self.name, self.path, word if self.values is None else list(self.values)]


def read_where(section: Section, roles: Mapping[str, str | None]) -> tuple[Condition, ...]:
    """[event] where, by path. roles: the path of each role, None where it has none."""
    table = section.raw("where")
    if table is None:
        return ()
    if not isinstance(table, dict):
        section.bad("where", "a table from fields to what they must be", _TODO)
        return ()
    found: dict[str, Condition] = {}
    for name, value in entries_of(table):
        where = f"[event] where.{name}"
        values = _values(value)
        if not is_path(name):
            section.problem(where, "a role of [event] or a dotted path", name, "name the field")
        elif value not in (PRESENT, ABSENT) and values is None:
            section.problem(where, _EXPECTED, value, _TODO)
        else:
            path = roles.get(name) or name
            if path in found:
                section.problem(
                    where, "one entry for each field", path, "leave out all but one of them"
                )
            keyword = isinstance(value, str) and value in (PRESENT, ABSENT)
            found[path] = Condition(name, path, value != ABSENT, None if keyword else values)
    if len(found) > MAX_CONDITIONS:
        section.bad("where", f"at most {MAX_CONDITIONS} fields", "leave some out")
    return tuple(found[path] for path in sorted(found))


def conditions_of(plain: Iterable[Mapping[str, object]]) -> tuple[Condition, ...]:
    """Conditions from their fields as JSON has them."""
    found = []
    for one in plain:
        values = one["values"]
        found.append(
            Condition(
                str(one["name"]),
                str(one["path"]),
                bool(one["present"]),
                tuple(map(str, values)) if isinstance(values, list | tuple) else None,
            )
        )
    return tuple(found)


def entries_of(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The entries by dotted path: `exps.e00 = ...` without quotes is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from entries_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _values(value: object) -> tuple[str, ...] | None:
    """The texts of a value or of a list of values; None where one of them cannot be a value."""
    given = value if isinstance(value, list) else [value]
    texts = [plain_text(one) for one in given if not isinstance(one, float)]
    found = {text for text in texts if text is not None and len(text) <= MAX_TEXT}
    good = texts.count(None) == 0 and len(texts) == len(given) and 0 < len(given) <= MAX_VALUES
    return tuple(sorted(found)) if good and found == set(texts) else None
