"""The kinds of values in answers, with the constraints that /openapi.json says of them.

An answer may hold records of the library. They are written as `records.RECORDS` declares; the
schema refers to them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Raw, Struct

from streammetrics_consumers.query.query import Slice

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

Tone = Literal["good", "bad", "warn", "neutral"]
ExperimentState = Literal["none", "waiting", "distrusted", "early", "undecided", "decided"]
Phase = Literal["waiting", "running", "ended"]  # of an experiment
UnitView = Literal["so_far", "closed"]  # of exposed units

SCHEMAS: Final = "#/components/schemas/"

if TYPE_CHECKING:
    Number: TypeAlias = float
else:  # the JSON form, for the schema
    Number: TypeAlias = Annotated[
        float | Literal["inf", "-inf"] | None, Meta(description="a double; null where undefined")
    ]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = Mapping[str, Count]
Time: TypeAlias = Annotated[int, Meta(description="milliseconds since 1970, UTC")]
Level: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]
Share: TypeAlias = Annotated[Number, Meta(description="a fraction of 1; null if the whole is 0")]
Digest: TypeAlias = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
Names: TypeAlias = Annotated[
    Slice, Meta(description="values by name; (other) lists the names that were summed over")
]
Bin: TypeAlias = Annotated[
    tuple[int, int, Count], Meta(description="[from, to, outcomes], in seconds")
]
Axis: TypeAlias = Annotated[
    tuple[tuple[float, str], ...], Meta(description="the labelled marks of an axis: [value, text]")
]
Figure: TypeAlias = Annotated[
    Mapping[str, Raw],  # any JSON
    Meta(
        description="a Vega-Lite specification with its data",
        extra_json_schema={"required": ["$schema", "data", "description"]},
    ),
]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of an answer. internal: its fields that are not in the JSON."""

    internal: ClassVar[tuple[str, ...]] = ()


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of one object, shown in place of its numbers; `render.cells` writes them."""


class Recorded:
    """Stands for a record of the library where schemas are derived."""


def recorded(name: str) -> type[Recorded]:
    """The kind of a record, for the schema: a reference to the one that has this name."""
    kind = Annotated[Recorded, Meta(extra_json_schema={"$ref": f"{SCHEMAS}{name}"})]
    return kind
