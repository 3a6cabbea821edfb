"""What a config changes in a generation, and which of these changes a person must request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from consumers.model.generation import Generation


@dataclass(frozen=True, slots=True)
class Requested:
    """Metrics by their names, or by those of their families (`experiment`): to end, which left the
    config, and to resume, which are back in it."""

    drop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()


NOTHING_REQUESTED: Final = Requested()


class Changes(NamedTuple):
    """What a config changes in a generation: metrics that it counts from now on, those that it
    counts no more, variants that it counts from now on, starts of an experiment's epochs, and
    metrics that it counts again."""

    added: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self[:])


@dataclass(frozen=True, slots=True)
class Begun:
    """The generation to write, and how it came to be; the rest is that of Changes."""

    generation: Generation
    created: bool
    added: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
