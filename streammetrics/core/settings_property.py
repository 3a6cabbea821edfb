"""Properties that follow from the settings of a metric: computed once for all states with them."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Self, TypeVar, cast, overload

T = TypeVar("T")

SHARED: Final = "_fixed"  # the attribute of a state with what all states made from it share


class settings_property(cached_property[T]):
    """A cached property whose value follows from the settings of a metric alone, which never
    change: states that are made from one another, empty, copied or taken, share it."""

    @overload
    def __get__(self, instance: None, owner: type[object] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[object] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[object] | None = None) -> Self | T:
        if instance is None:
            return self
        state, name = instance.__dict__, cast("str", self.attrname)
        shared = state.get(SHARED, {})
        if name not in shared:
            shared[name] = self.func(instance)
        state[name] = shared[name]
        return cast("T", shared[name])
