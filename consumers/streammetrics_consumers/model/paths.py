"""Dotted paths into an event: the names of the objects on the way, and of the field.

    user.id                          the field `id` of the object `user`
    attributes."feature_flag.key"    a name with dots stands in quotes

    key, key.NAME, header.NAME       beside the event: of the record of Kafka that has it

A name has no quote, backslash or control character. Quotes are only around names with dots, so that
each field has one path.
"""

from __future__ import annotations

import re
from typing import Final

MAX_PATH: Final = 200  # characters
KEY: Final = "key"
_PLAIN: Final = r'"\\\x00-\x1f'  # what no name has
_NAME: Final = re.compile(rf'"[^{_PLAIN}.]*\.[^{_PLAIN}]*"|[^{_PLAIN}.]+')
_PATH: Final = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")


def is_path(value: object) -> bool:
    """Whether this is a dotted path without empty names.

    >>> is_path("user.id"), is_path('flags."a.b"'), is_path("user..id"), is_path('"user"')
    (True, True, False, False)
    """
    return isinstance(value, str) and len(value) <= MAX_PATH and bool(_PATH.fullmatch(value))


def names_in(path: str) -> tuple[str, ...]:
    """The names in a path, without quotes.

    >>> names_in("user.id"), names_in('attributes."feature_flag.key"')
    (('user', 'id'), ('attributes', 'feature_flag.key'))
    """
    if '"' not in path:
        return tuple(path.split("."))
    return tuple(name.strip('"') for name in _NAME.findall(path))


def is_beside(path: str) -> bool:
    """Whether this is, in Kafka, a path into the key or the headers of a record.

    >>> is_beside("key.user"), is_beside("key"), is_beside("keys")
    (True, True, False)
    """
    return path == KEY or path.startswith(("key.", "header."))


def column_of(path: str) -> str:
    """The column with the field at a path where names of columns have dots as they are.

    >>> column_of("user.id")
    'user.id'
    >>> column_of('attributes."feature_flag.key"')
    'attributes.feature_flag.key'
    """
    return path.replace('"', "")
