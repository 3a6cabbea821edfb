"""Struct types for decoding the fields of events at some paths, and nothing else of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

SCALAR: Final = str | int | float | bool
NO_OBJECT: Final = SCALAR | list[Any] | None


class OptionalLeaf(NamedTuple):
    """The type and the default of a field of any value: the type is of those that are expected."""

    read: object
    default: object = None


OPTIONAL: Final = OptionalLeaf(Any)


class StructTree(NamedTuple):
    """A struct type for a tree of names. attributes: the attribute of each field, by the names on
    its path. without_fields: by attribute of an object that may be missing or another value, the
    object in its place."""

    type: type[Struct]
    attributes: dict[tuple[str, ...], str]
    without_fields: dict[str, Struct]


def struct_of(tree: Mapping[str, object]) -> StructTree:
    """A struct type for a tree of names.

    A leaf is the type of a field, with a default if the field may be missing. An object on the path
    to such fields alone may be missing or null; if all of them are `OPTIONAL`, it may be any value.
    """
    required: list[Any] = []
    optional: list[Any] = []
    attributes: dict[tuple[str, ...], str] = {}
    without_fields: dict[str, Struct] = {}
    rename = {}
    for i, (name, node) in enumerate(tree.items()):
        attribute = f"f{i}"
        rename[attribute] = name
        read = node
        if isinstance(node, dict):
            inner, below, empty = struct_of(node)
            attributes.update(((name, *path), f"{attribute}.{a}") for path, a in below.items())
            without_fields.update((f"{attribute}.{a}", object_) for a, object_ in empty.items())
            read = (inner,)
            if len(inner.__struct_defaults__) == len(inner.__struct_fields__):
                without_fields[attribute] = inner()
                read = (inner | (NO_OBJECT if _is_optional(node) else None), inner())
        else:
            attributes[(name,)] = attribute
        assert isinstance(read, tuple)
        (optional if len(read) == 2 else required).append((attribute, *read))
    fields = required + optional
    struct = msgspec.defstruct("Event", fields, rename=rename, frozen=True, gc=False)
    return StructTree(struct, attributes, without_fields)


def _is_optional(node: object) -> bool:
    """Whether a node of a tree has only optional fields."""
    if isinstance(node, Mapping):
        return all(map(_is_optional, node.values()))
    return isinstance(node, OptionalLeaf)
