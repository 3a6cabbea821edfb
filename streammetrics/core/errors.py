"""Every error reports four things: what was expected, what it got, where, and a hint.

ValueError
└── StreamMetricsError
    ├── InputError      rows that an update refuses
    │   ├── UnknownKeyError   a key or name that is not there; a KeyError too
    │   └── ArgumentError     a call with other arguments than there are; a TypeError too
    ├── SettingsError   a setting out of range, or states with unequal settings
    ├── StateError      bytes that are not a state, or a count that would overflow
    └── OverlapError    two states that counted the same rows
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

# Hints for unknown names, and for tables in place of columns.

FOR_A_TABLE: Final = 'for a table, name its columns: update_from(table, labels="label", ...)'


def table_instead(value: object) -> str | None:
    """The hint where a table was given as a column; None for any other value."""
    frame = hasattr(value, "columns") or hasattr(value, "num_columns")
    return FOR_A_TABLE if frame or isinstance(value, Mapping) else None


def nearest(name: object, known_names: Iterable[str], otherwise: str = "correct the name") -> str:
    """The most similar known name, as a question; `otherwise` if none is similar.

    >>> nearest("crt", ("ctr", "auc")), nearest("x", ("ctr", "auc"))
    ("did you mean 'ctr'?", 'correct the name')
    """
    close = similar(str(name), known_names)
    return otherwise if close is None else f"did you mean {close!r}?"


# What other libraries call an argument, by what it is here, the likeliest first.
_USUAL_ARGUMENTS: Final = {
    "labels": "y_true y target targets label truth true actual actuals ground_truth gt y_test",
    "scores": "y_score y_scores y_prob y_proba y_hat y_pred pred preds prediction predictions p "
    "prob probs proba probas probability probabilities score output outputs input",
    "predictions": "y_pred y_hat pred preds prediction input output outputs y_score scores",
    "weights": "sample_weight sample_weights weight w",
    "groups": "group group_id group_ids qid qids query queries query_id query_ids user users "
    "user_id user_ids session session_id session_ids indexes ids",
    "keys": "key slice slices by segment segments",
    "times_ms": "time times timestamp timestamps ts event_time time_ms",
    "values": "value x xs data y y_true input preds",
    "numerators": "numerator value values x clicks labels y_true",
    "denominators": "denominator",
    "n_classes": "num_classes n_class num_class classes nclasses",
    "n_labels": "num_labels n_label num_label",
    "top_k": "k topk",
    "positive": "pos_label positive_label positive_class",
    "threshold": "thresh thresholds cutoff cut_off",
    "bins": "n_bins num_bins nbins",
    "measures": "measure metrics metric names",
    "metrics": "metric",
}
_NO_ARGUMENTS: Final = {
    "average": 'an average is an argument of a view, as in compute().precision("macro") of '
    "MulticlassConfusion",
    "task": "each task has its class: BinaryConfusion, MulticlassConfusion, MultilabelConfusion",
    "zero_division": "what is 0 / 0 is nan, with a reason",
    "multi_class": "MulticlassAUC has the areas of each class against the rest",
    "max_fpr": "a partial area is a view: compute().partial_auc(max_fpr)",
    "beta": "it is an argument of a view: compute().f_beta(b)",
    "num_classes": "MulticlassConfusion and MulticlassAUC have n_classes",
    "num_labels": "MultilabelConfusion has n_labels",
}


def meant(name: str, known_arguments: Collection[str]) -> str | None:
    """The argument that a name means, as other libraries call it, or by its spelling.

    >>> meant("y_true", ("labels", "scores")), meant("preds", ("labels", "predictions"))
    ('labels', 'predictions')
    """
    bare = name.casefold()
    usual = (argument for argument, names in _USUAL_ARGUMENTS.items() if bare in names.split())
    return next((argument for argument in usual if argument in known_arguments), None) or similar(
        name, known_arguments
    )


def argument_hint(names: Iterable[str], known_arguments: Collection[str], otherwise: str) -> str:
    """The hint for unknown arguments: what they mean, as a question, or where that is;
    `otherwise` if it is not clear of each.

    >>> argument_hint(["y_true", "preds"], ("labels", "scores", "weights"), "")
    "did you mean 'labels' and 'scores'?"
    """
    unknown = list(names)
    arguments = [meant(name, known_arguments) for name in unknown]
    if all(arguments):
        return f"did you mean {' and '.join(map(repr, arguments))}?"
    return next((_NO_ARGUMENTS[name] for name in unknown if name in _NO_ARGUMENTS), otherwise)


def similar(text: str, names: Iterable[str]) -> str | None:
    """The name that is most like a text; None if none is."""
    import difflib

    return next(iter(difflib.get_close_matches(text, list(names), n=1, cutoff=0.6)), None)


_NO_ROWS = np.empty(0, np.intp)


class StreamMetricsError(ValueError):
    """The base of all errors of this library.

    >>> try:
    ...     raise StreamMetricsError(
    ...         expected="a number", got="'x'", where="weights[3]", hint="pass numbers"
    ...     )
    ... except ValueError as error:
    ...     print(error)
    weights[3]: expected a number, got 'x'; pass numbers
    """

    def __init__(self, *, expected: str, got: str, where: str, hint: str) -> None:
        self.expected, self.got, self.where, self.hint = expected, got, where, hint
        super().__init__(f"{where}: expected {expected}, got {got}; {hint}")

    def but(self, **changed: str) -> Self:
        """The same error with some parts replaced."""
        parts = {name: getattr(self, name) for name in ("expected", "got", "where", "hint")}
        new = type(self)(**parts | changed)
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in parts})
        return new

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with the message as a positional argument.
        parts = (type(self), self.expected, self.got, self.where, self.hint)
        return (_rebuild, parts, self.__dict__)


class InputError(StreamMetricsError):
    """Rows that cannot be counted; nothing was changed.

    `rows` holds the indices of all invalid rows; it is empty if the check does not know them.
    """

    def __init__(
        self,
        *,
        expected: str,
        got: str,
        where: str,
        hint: str,
        rows: NDArray[np.intp] = _NO_ROWS,
    ) -> None:
        super().__init__(expected=expected, got=got, where=where, hint=hint)
        self.rows = rows

    def of_rows(self, where: str, rows: NDArray[np.intp]) -> Self:
        """The same error about other rows, such as the lists that its rows belong to."""
        new = self.but(where=where)
        new.rows = rows
        return new


class UnknownKeyError(InputError, KeyError):
    """A key, name or window that a state or a result does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show its repr


class ArgumentError(InputError, TypeError):
    """A call with other arguments than the method has."""


class SettingsError(StreamMetricsError):
    """A setting out of range, or two states whose settings differ."""


class StateError(StreamMetricsError):
    """Bytes that are not a state of this library, or a state that cannot grow further."""


class OverlapError(StreamMetricsError):
    """Two states that counted the same piece of the same source."""


def _rebuild(
    kind: type[StreamMetricsError], expected: str, got: str, where: str, hint: str
) -> StreamMetricsError:
    return kind(expected=expected, got=got, where=where, hint=hint)


def bad_rows(
    column: Sequence[object] | NDArray[np.generic],
    rows: NDArray[np.intp],
    name: str,
    expected: str,
    hint: str,
    got: str = "",
) -> InputError:
    """The error for these rows of a column, located at the first; got: by default its value."""
    where = f"{name}[{rows[0]}]"
    got = got or shown(column[rows[0]])
    return InputError(expected=expected, got=got, where=where, hint=hint, rows=rows)


_NAMED: Final = 5  # keys that an error names
_SIMILAR: Final = 1_000  # keys that a wrong one is compared with,
_COMPARED: Final = 60  # characters of each


def unknown_key(
    key: object,
    known_keys: Collection[object],
    where: str,
    kind: str = "keys",
    further_hint: str = "",
) -> UnknownKeyError:
    """The error for a key that is not among the known ones, with the nearest of these.

    kind: what the keys are. further_hint: one after that of the nearest key.

    >>> print(unknown_key("treatmnt", ("control", "treatment"), "PerKey.state"))
    PerKey.state: expected one of 2 keys ('control', 'treatment'), got 'treatmnt'; did you mean \
'treatment'?
    """
    texts = {_text(candidate): candidate for candidate in islice(known_keys, _SIMILAR)}
    close = similar(_text(key), texts)
    hint = "" if close is None else f"did you mean {shown(texts[close])}?"
    names = ", ".join(map(shown, islice(known_keys, _NAMED)))
    suffix = f" and {len(known_keys) - _NAMED:,} more" if len(known_keys) > _NAMED else ""
    return UnknownKeyError(
        expected=f"one of {len(known_keys):,} {kind} ({names}{suffix})"
        if known_keys
        else f"no {kind}",
        got=shown(key),
        where=where,
        hint="; ".join(filter(None, (hint, further_hint))) or "correct it",
    )


def _text(key: object) -> str:
    """A key as it is compared with others."""
    return key[:_COMPARED] if isinstance(key, str) else shown(key)


def shown(value: object, limit: int = 60) -> str:
    """`repr`, cut to `limit` characters, so that hostile input cannot flood a message.

    Of a text of several lines, such as that of a result, only the first.
    """
    try:
        text = repr(value.item()) if isinstance(value, np.generic) else repr(value)
    except Exception:  # as for an integer of more than 4,300 digits
        text = f"<{type(value).__name__}>"
    text = text.partition("\n")[0]
    return text if len(text) <= limit else text[: limit - 1] + "…"
