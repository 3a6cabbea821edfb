"""How Beam's workers hand states to each other."""

from __future__ import annotations

from apache_beam.coders import Coder, registry

from streammetrics.combine.sealed import Sealed
from streammetrics.core.accumulator import Accumulator
from streammetrics.registry import load, metric_types


class StateCoder(Coder):  # type: ignore[misc]  # Beam is not there when types are checked
    """A state as its envelope: equal states with equal provenance have equal bytes."""

    def encode(self, value: Accumulator) -> bytes:
        return value.to_file_bytes()

    def decode(self, encoded: bytes) -> Accumulator:
        return load(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type[Accumulator]:
        return Accumulator

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


for _kind in (Accumulator, Sealed, *metric_types().values()):
    registry.register_coder(_kind, StateCoder)
