"""Whether two states counted the same rows or users, so that they are no independent arms."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from streammetrics.combine.user_groups import UserGroups
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import shown
from streammetrics.kernels.inference.paired import rank_correlation

# The counts of labels, lists and groups in a result; they do not depend on the model.
_OF_LABELS: Final = {
    "positives": "positives",
    "support": "rows of each class",
    "labels": "sum of labels",
    "label_squares": "sum of squared labels",
    "lists_kept": "lists with a relevant item",
    "lists_empty": "lists without a relevant item",
    "groups": "groups",
    "groups_one_class": "groups of one class",
}
_FEWEST_ROWS: Final = 10  # with fewer rows, equal counts may be chance
_FEWEST_GROUPS: Final = 8
_FEWEST_CORRELATED: Final = 32
_CORRELATED: Final = 0.7  # by chance once in a million comparisons of 32 groups
_CONSEQUENCE: Final = (
    "the arms are not independent, and this interval and p-value do not hold. Count two models of "
    "the same rows in one Paired(metric); compare UserGroups of the same users with paired=True"
)


def same_rows(
    control: Accumulator, treatment: Accumulator, *, equally_many: bool = True
) -> str | None:
    """Why both states may have the same rows or users, and what follows; None if they do not.

    They have if both counted the same rows by their provenance, or if all counts of users and
    labels are equal in both. equally_many: whether both may have the same number of rows; if not,
    only provenance and users are compared. Users are taken as shared if their rows in each group
    are correlated.
    """
    claim = next(_shared(control, treatment), None)
    if claim is None and equally_many:
        claim = _equal(control.compute(), treatment.compute())
    if claim is None:
        claim = _same_users(control, treatment)
    return claim and f"{claim} {_CONSEQUENCE}"


def _shared(control: Accumulator, treatment: Accumulator) -> Iterator[str]:
    """The ranges that both states counted, each as a message."""
    treatment_ranges = list(treatment.provenance)
    for source, piece, start, end in control.provenance:
        for other_source, other_piece, first, last in treatment_ranges:
            low, high = max(start, first), min(end, last)
            if (source, piece) == (other_source, other_piece) and low < high:
                of_piece = f", {piece}" if piece else ""
                span = f"[{low}, {high}) of {source}{of_piece}"
                yield f"by their provenance, both states counted {span}, so"


def _same_users(control: Accumulator, treatment: Accumulator) -> str | None:
    """Whether rows of each group of users are correlated, as they are if both have the users."""
    if not (isinstance(control, UserGroups) and isinstance(treatment, UserGroups)):
        return None
    control_rows, treatment_rows = (state.rows_of_groups() for state in (control, treatment))
    pairs = [pair for pair in zip(control_rows, treatment_rows, strict=True) if any(pair)]
    if len(pairs) < _FEWEST_CORRELATED:
        return None
    rho = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    if not rho > _CORRELATED:
        return None
    return (
        f"rows of the {len(pairs)} groups of users have a rank correlation of {rho:.2f} between "
        "both states, and users of different arms have about 0: if both have the same users,"
    )


def _equal(control: object, treatment: object) -> str | None:
    """The counts that are equal in both results, if there are enough to make chance unlikely."""
    if isinstance(control, UserGroupsResult) and isinstance(treatment, UserGroupsResult):
        n_groups = sum(rows > 0 for rows in control.weights)
        if control.weights != treatment.weights or n_groups < _FEWEST_GROUPS:
            return None
        clause = f"both states have equal numbers of rows in each of {n_groups} groups of users"
        return f"{clause}: if these are the same users,"
    rows, other_rows = getattr(control, "rows", 0), getattr(treatment, "rows", 0)
    labels, other_labels = _label_counts(control), _label_counts(treatment)
    if not labels or labels != other_labels or rows != other_rows or rows < _FEWEST_ROWS:
        return None
    equal = [f"{rows} rows", *(f"{value} {_OF_LABELS[name]}" for name, value in labels)]
    clause = f"both states have {', '.join(equal[:-1])} and {equal[-1]}"
    return f"{clause}: if these are the same rows, scored by two models,"


def _label_counts(result: object) -> list[tuple[str, str]]:
    counts = [(name, getattr(result, name, None)) for name in _OF_LABELS]
    return [(name, _text(value)) for name, value in counts if value is not None]


def _text(value: object) -> str:
    listed = getattr(value, "tolist", None)
    plain_value = listed() if callable(listed) else value
    return str(plain_value) if isinstance(plain_value, Fraction) else shown(plain_value)
