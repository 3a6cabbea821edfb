"""Views by their text: `auc`, `f_beta(2)`, `recall(micro)`, `rates(1).precision`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from streammetrics.core.errors import InputError, shown
from streammetrics.core.nearest import nearest
from streammetrics.results.bounded import Bounded
from streammetrics.results.figures import headline_of, views_of

Argument: TypeAlias = int | float | str

# A name, what is called or looked up, and what of it. A text in brackets may have quotes.
_FORM: Final = re.compile(r"([a-z]\w*)(?:\(([^()]*)\)|\[([^\[\]]*)\])?(?:\.(.+))?", re.IGNORECASE)
_MOST: Final = 1000  # characters of a view


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view as it is written. text: without spaces. arguments: in brackets, none if there are no
    brackets. rest: after the first dot, a view of what comes before it; "" if nothing.

    >>> ViewText.of("rates(1).f_beta(0.5)")
    ViewText(text='rates(1).f_beta(0.5)', name='rates', arguments=(1,), rest='f_beta(0.5)')
    """

    text: str
    name: str = ""
    arguments: tuple[Argument, ...] | None = None
    rest: str = ""

    @classmethod
    def of(cls, view: object) -> ViewText:
        """That of a text, or of what prints as one; its name is "" if it has another form."""
        text = "".join(str(view)[:_MOST].split())
        form = _FORM.fullmatch(text)
        if form is None:
            return cls(text)
        name, called, looked_up, rest = form.groups()
        inside = called if called is not None else looked_up
        given = None if inside is None else tuple(map(_argument, inside.split(","))) * bool(inside)
        return cls(text, name, given, rest or "")

    def figure(self, result: object) -> object:
        """What it leads to in a result before the dot; InputError where it leads nowhere.

        What a method of the result refuses is an InputError of that method.
        """
        found = getattr(result, self.name, None) if self.name[:1].isalpha() else None
        if not self.name and isinstance(result, Mapping):
            return result.get(self.text)
        if self.arguments is None:
            return found
        try:
            if isinstance(found, (tuple, Mapping)) and len(self.arguments) == 1:
                return found[self.arguments[0]]  # type: ignore[index]
            return found(*self.arguments) if callable(found) else None
        except (TypeError, LookupError):
            raise self.unknown(result) from None

    def unknown(self, result: object) -> InputError:
        """The error for a view that a result has not got."""
        return InputError(
            expected=f"a view of {type(result).__name__}: {', '.join(views_of(result)) or 'none'}",
            came=shown(self.text),
            where="view",
            todo=nearest(
                self.text,
                views_of(result),
                "name one of these, or one with its arguments, such as f_beta(2)",
            ),
        )


def view_of(result: object, view: object = None) -> ViewText:
    """A view of a result as it is written; None: of its first one.

    Of a mapping, such as measures of lists, a key is a name whatever its form.
    """
    given = headline_of(result) if view is None else view
    asked = ViewText.of(given)
    known = isinstance(result, Mapping) and asked.text in result
    return ViewText(asked.text) if known else asked


def value_of(result: object, view: object = None) -> float | Bounded:
    """The value of a view of a result, also of one with arguments; None: of its first view.

    InputError for what is no view.

    >>> from streammetrics.results.rates import Rates
    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> value_of(rates, "f_beta(2)"), value_of(rates)
    (0.8333333333333334, 0.6666666666666666)
    """
    asked = view_of(result, view)
    found = asked.figure(result)
    if asked.rest and found is not None:
        return value_of(found, asked.rest)
    if isinstance(found, Bounded):
        return found
    if isinstance(found, (float, np.floating)):
        return float(found)
    raise asked.unknown(result)


def _argument(text: str) -> Argument:
    bare = text.strip("\"'")
    for kind in (int, float):
        try:
            return kind(bare) if bare == text else bare
        except ValueError:
            continue
    return bare
