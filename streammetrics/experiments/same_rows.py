"""Whether two states may have counted the same rows: then their arms are not independent."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import shown

# What results know of labels, lists and groups, which no model changes.
_OF_LABELS: Final = {
    "positives": "positives",
    "support": "rows of each class",
    "labels": "sum of labels",
    "label_squares": "sum of squared labels",
    "lists_kept": "lists with something relevant",
    "lists_empty": "lists with nothing relevant",
    "groups": "groups",
    "groups_one_class": "groups of one class",
}
_FEWEST_ROWS: Final = 10  # of which equal numbers say something
_FEWEST_GROUPS: Final = 8
_CONSEQUENCE: Final = (
    "the arms are not independent, and this interval and p-value do not hold; of a mean, count the "
    "differences of the two models row by row in one Ratio"
)


def warn_of_same_rows(control: Accumulator, treatment: Accumulator, *, equally_many: bool) -> None:
    """A UserWarning where provenance says that both states counted the same rows, or where all that
    is known of users and labels is equal in both; it says which of these it is.

    equally_many: whether both have the same number of rows, without which nothing else is asked.
    """
    said = next(_shared(control, treatment), None)
    if said is None and equally_many:
        said = _equal(control.compute(), treatment.compute())
    if said is not None:
        warnings.warn(f"compare: {said} {_CONSEQUENCE}", stacklevel=3)


def _shared(control: Accumulator, treatment: Accumulator) -> Iterator[str]:
    """What both counted, range by range."""
    theirs = list(treatment.provenance)
    for source, piece, start, end in control.provenance:
        for other, of, first, last in theirs:
            low, high = max(start, first), min(end, last)
            if (source, piece) == (other, of) and low < high:
                of_piece = f", {piece}" if piece else ""
                known = f"[{low}, {high}) of {source}{of_piece}"
                yield f"by their provenance both states counted {known}, so"


def _equal(control: object, treatment: object) -> str | None:
    """What is the same in both results, if it is enough to be no accident as a rule."""
    if isinstance(control, UserGroupsResult) and isinstance(treatment, UserGroupsResult):
        n_groups = sum(rows > 0 for rows in control.weights)
        if control.weights != treatment.weights or n_groups < _FEWEST_GROUPS:
            return None
        known = f"both states have equally many rows in each of {n_groups} groups of users"
        return f"{known}: if these are the same users,"
    rows, others = getattr(control, "rows", 0), getattr(treatment, "rows", 0)
    mine, theirs = _of_labels(control), _of_labels(treatment)
    if not mine or mine != theirs or rows != others or rows < _FEWEST_ROWS:
        return None
    told = [f"{rows} rows", *(f"{value} {_OF_LABELS[name]}" for name, value in mine)]
    known = f"both states have {', '.join(told[:-1])} and {told[-1]}"
    return f"{known}: if these are the same rows, scored by two models,"


def _of_labels(result: object) -> list[tuple[str, str]]:
    found = [(name, getattr(result, name, None)) for name in _OF_LABELS]
    return [(name, _text(value)) for name, value in found if value is not None]


def _text(value: object) -> str:
    listed = getattr(value, "tolist", None)
    found = listed() if callable(listed) else value
    return str(found) if isinstance(found, Fraction) else shown(found)
