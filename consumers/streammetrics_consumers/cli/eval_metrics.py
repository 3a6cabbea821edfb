"""The metrics that `eval` offers by name, and the columns that each of them reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import streammetrics as sm
from streammetrics import Accumulator, InputError, SettingsError
from streammetrics_consumers.cli.arguments import COLUMNS, EVAL_SETTINGS, UsageError
from streammetrics_consumers.config.section import did_you_mean
from streammetrics_consumers.model import formatting

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Given:
    """What the settings of the metrics are made of: flags, the kind of the ids of lists, all
    requested measures of lists, and the grid of scores, if a requested value needs one."""

    threshold: float = 0.5
    n_classes: int = 2
    n_items: int = 1
    k: int = 1
    ids: str = "hashed"
    measures: tuple[str, ...] = ("AP",)
    grid: str | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """The values that one metric offers by name. also: the optional arguments of the metric that
    these values need; settings: those that it needs; note: what the table says of the first of
    them, such as its settings."""

    make: Callable[[Given], Accumulator]
    names: str
    also: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    note: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags whose columns it reads."""
        needed = [name for name, must in self.make(Given()).arguments().items() if must]
        return tuple(_READS.get(name, name) for name in (*needed, *self.also))


def _list_metric(options: Given) -> Accumulator:
    return sm.GroupedScores([*options.measures], ids=options.ids)


_MEASURES: Final = Offer(_list_metric, "")
_OF_SUBTOPICS: Final = Offer(_list_metric, "", also=("subtopics",))
_GRID: Final = "relative"
_BY_MASS: Final = Offer(
    lambda _: sm.Calibration(grid=_GRID),
    "ece mce ace ece_by_mass mce_by_mass",
    note="over {metric.bins} groups of equal mass; ece_by_width is over bins of equal width",
)
# A view with arguments, such as `f_beta(2)`, is of the first metric that has it. A name that
# several metrics offer is of the first one whose columns are given.
_OFFERS: Final = (
    Offer(lambda _: sm.ExactAUC(), "auc gini ks pr_auc_trapezoid"),
    Offer(
        lambda options: sm.Calibration(grid=options.grid),
        "log_loss normalized_entropy brier copc mean_score base_rate ece_by_width mce_by_width",
    ),
    _BY_MASS,
    Offer(
        lambda options: sm.BinaryConfusion(threshold=options.threshold),
        "accuracy error_rate balanced_accuracy g_mean precision recall specificity f1 mcc kappa "
        "jaccard fpr fnr npv",
        note="a score of {metric.threshold:g} or more is a prediction of 1; another: --threshold",
    ),
    Offer(
        lambda options: sm.MulticlassConfusion(n_classes=options.n_classes),
        "macro_f1 accuracy error_rate balanced_accuracy g_mean mcc kappa",
        settings=("n_classes",),
    ),
    Offer(
        lambda options: sm.ItemExposure(n_items=options.n_items, k=options.k),
        "exposure_gini",
        settings=("n_items", "k"),
        note="of the first {metric.k} items of each list",
    ),
    Offer(lambda _: sm.ExactUplift(), "qini ate qini_radcliffe qini_radcliffe_relative gain "
          "gain_relative treated_share"),
    Offer(
        lambda _: sm.OffPolicy(),
        "ips snips mean_reward effective_sample_size mean_weight largest_weight largest_share "
        "raw.ips raw.snips",
    ),
    Offer(
        lambda _: sm.OffPolicy(),
        "clipped share_clipped raw.clipped",
        note="a weight over {metric.clip:g} is clipped to it",
    ),
    Offer(
        lambda _: sm.OffPolicy(),
        "dr sndr raw.dr raw.sndr",
        also=("predicted_logged", "predicted_target"),
    ),
    Offer(lambda _: sm.Moments(), "mean variance std skewness minimum maximum above_zero"),
    Offer(lambda _: sm.ExactQuantiles(), "median p90 p95 p99 iqr"),
    Offer(lambda _: sm.Ratio(), "ctr"),
    Offer(
        lambda options: sm.GroupedInterleaving(ids=options.ids),
        "preference win_share_a win_share_b pvalue e_value",
    ),
    Offer(lambda options: sm.GroupedAUC(ids=options.ids), "gauc"),
)  # fmt: skip
_BY_NAME: Final = [(name, offer) for offer in _OFFERS for name in offer.names.split()]
# The views that choose a threshold by the rows, each with its points.
_CHOSEN: Final[Mapping[str, Callable[[Any, Fraction], Sequence[Any]]]] = {
    "precision_at_recall": lambda r, x: r.best("precision", recall_at_least=x).points,
    "recall_at_precision": lambda r, x: r.best("recall", precision_at_least=x).points,
    "best_f_beta": lambda r, x: r.best("f_beta", beta=x).points,
    "precision_at_budget": lambda r, x: [r.threshold_for(predicted_positive=x)],
    "recall_at_budget": lambda r, x: [r.threshold_for(predicted_positive=x)],
}
# The views that need a number in brackets, each with an example.
_EXAMPLES: Final[Mapping[str, str]] = {
    "precision_at_recall": "0.8",
    "recall_at_precision": "0.8",
    "precision_at_budget": "0.05",
    "recall_at_budget": "0.05",
    "best_f_beta": "2",
    "f_beta": "2",
    "quantile": "0.5",
    "trimmed_mean": "0.1",
    "winsorised_mean": "0.1",
    "uplift_in_part": "1, 10",  # the second one may be left out
}
_ONE: Final = r"-?[0-9]{0,18}\.?[0-9]{1,18}"
_NUMBERS: Final = re.compile(rf"{_ONE}(?:, ?{_ONE})?\)")  # the end of a view of _EXAMPLES
_KNOWN: Final = [*dict.fromkeys([*(name for name, _ in _BY_NAME), *_EXAMPLES])]
_PERCENTILE: Final = re.compile(r"p(\d{1,2})(?:\.(\d{1,10}))?")
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "rocauc": "auc",
    "logloss": "log_loss",
    "ne": "normalized_entropy",
    "rate": "ctr",
    "mean": "ctr",
    "var": "variance",
    "min": "minimum",
    "max": "maximum",
    "bestf1": "best_f_beta(1)",
    "bestfbeta": "best_f_beta(1)",
    "auuc": "gain",
    "ess": "effective_sample_size",
}
# The flag whose column an argument reads, if it has another name.
_READS: Final = {
    "numerators": "labels",
    "groups": "lists",
    "lists": "shown",
}
# The view of its metric that a name means, if that is not its own.
_VIEWS: Final[Mapping[str, str]] = {
    "ctr": "ratio",
    "exposure_gini": "gini",
    "ece": "ece_by_mass",
    "mce": "mce_by_mass",
    "ece_by_width": "ece",
    "mce_by_width": "mce",
}


@dataclass(frozen=True, slots=True)
class RequestedValue:
    """One requested value. name: as it is shown; metric: its name in the panel; view: of that."""

    name: str
    metric: str
    view: str


@dataclass(frozen=True, slots=True)
class Request:
    """The metrics of a panel, what is asked of each, the column that each flag reads (of those that
    a metric needs), and what a table says of the values."""

    metrics: Mapping[str, Accumulator]
    asked: Sequence[RequestedValue]
    reads: Mapping[str, str]
    notes: Sequence[str]


class _OfferedValue(NamedTuple):
    """A requested value that an offer has. name: as it is shown."""

    offer: Offer
    name: str
    view: str


def request_of(
    names: Sequence[str],
    columns: Mapping[str, str | None],
    settings: Mapping[str, int | None],
    schema: pa.Schema,
    threshold: float,
) -> Request:
    """What these names ask for; UsageError names a flag whose column or setting is missing."""
    lists = columns["lists"]
    ids = "hashed" if lists is None else _ids(schema, lists)
    numbers = {name: number for name, number in settings.items() if number is not None}
    options = replace(Given(threshold, ids=ids), **numbers)  # type: ignore[arg-type]
    flags = {**columns, **settings}
    choices = [_with_flags(name, _candidates(name, options), flags) for name in names]
    of_lists = (_MEASURES, _OF_SUBTOPICS)
    measures = dict.fromkeys(choice.view for choice in choices if choice.offer in of_lists)
    grid = _GRID if any(choice.offer is _BY_MASS for choice in choices) else None
    options = replace(options, measures=tuple(measures), grid=grid)
    metrics: dict[str, Accumulator] = {}
    figures: list[RequestedValue] = []
    reads: dict[str, str] = {}
    notes: dict[str, str] = {}
    for choice in choices:
        metric = choice.offer.make(options)
        key = type(metric).__name__
        metrics.setdefault(key, metric)
        figures.append(RequestedValue(choice.name, key, choice.view))
        reads.update({flag: cast("str", columns[flag]) for flag in choice.offer.flags})
        if choice.offer.note:
            note = f"{choice.name}: {choice.offer.note.format(metric=metric)}"
            notes.setdefault(choice.offer.note, note)
    return Request(metrics, [*dict.fromkeys(figures)], reads, [*notes.values()])


def _with_flags(
    name: str, candidates: Sequence[_OfferedValue], flags: Mapping[str, object]
) -> _OfferedValue:
    """The first candidate whose columns and settings are given; UsageError names those that are
    missing."""
    missing = []
    for candidate in candidates:
        needed = (*candidate.offer.flags, *candidate.offer.settings)
        absent = [flag for flag in needed if flags[flag] is None]
        if not absent:
            return candidate
        missing.append([_FLAGS[flag] for flag in absent])
    pronoun = "one of these" if missing[1:] else "it" if len(missing[0]) == 1 else "them"
    raise UsageError(
        f"--metrics {formatting.name(name)}: expected "
        f"{' or '.join(', '.join(absent) for absent in missing)}, got nothing; add {pronoun}"
    )


def flag_of(argument: str) -> str:
    """The flag of a column, as it is typed.

    >>> flag_of("predicted_target")
    '--predicted-target'
    """
    return f"--{argument.replace('_', '-')}"


_FLAGS: Final = {name: f"{flag_of(name)} COLUMN ({what})" for name, what in COLUMNS.items()} | {
    name: f"{flag_of(name)} N ({what})" for name, what in EVAL_SETTINGS.items()
}


def _candidates(name: str, options: Given) -> list[_OfferedValue]:
    """What a requested name may mean, best first; UsageError if nothing."""
    stem, bracket, argument = name.partition("(")
    plain = stem.strip().lower().replace("-", "_") + bracket + argument
    usual = _OTHER_NAMES.get(plain.replace("_", ""), plain)
    candidates = [
        _OfferedValue(offer, offer_name, _view(offer_name))
        for spelling in dict.fromkeys((plain, usual))
        for offer_name, offer in _BY_NAME
        if offer_name == spelling
    ]
    if candidates:
        return candidates
    offer = _offer_of_view(_view(usual), options)
    if offer is not None:
        return [_OfferedValue(offer, usual, _view(usual))]
    measure = measure_of(name, _KNOWN)
    offer = _OF_SUBTOPICS if sm.parse_measure(measure).subtopics else _MEASURES
    return [_OfferedValue(offer, measure, measure)]


def _view(name: str) -> str:
    """The view of its metric that a name means.

    >>> [_view(name) for name in ("p99", "p99.9", "ctr", "f_beta(2)")]
    ['quantile(0.99)', 'quantile(0.999)', 'ratio', 'f_beta(2)']
    """
    match = _PERCENTILE.fullmatch(name)
    if match:
        return f"quantile(0.{int(match[1]):02d}{match[2] or ''})"
    return _VIEWS.get(name, name)


def _offer_of_view(view: str, options: Given) -> Offer | None:
    """The offer of a view with arguments, such as `precision_at_recall(0.8)`; None if there is
    none. UsageError if the arguments are missing or wrong."""
    stem, bracket, argument = view.partition("(")
    example = _EXAMPLES.get(stem, argument)
    few = argument.count(",") <= example.count(",")
    if stem in _EXAMPLES and not (few and _NUMBERS.fullmatch(argument)):
        got = formatting.name(bracket + argument) if bracket else "none"
        raise UsageError(
            f"--metrics {formatting.name(view)}: expected a number in brackets, got {got}; "
            f"write {stem}({example})"
        )
    if not bracket:
        return None
    try:
        sm.parse_measure(view)
        return None
    except SettingsError:
        pass
    for offer in _OFFERS:
        try:
            cast("Any", offer.make(options).compute()).interval(view)
            return offer
        except InputError as error:
            if error.where != "view":
                raise UsageError(
                    f"--metrics {formatting.name(view)}: expected {error.expected}, got "
                    f"{error.got}; {error.hint}"
                ) from None
    return None


_DRIFT: Final = "drift is of two state files: see streammetrics drift --help"
_BUDGET: Final = "recall_at_budget(0.05) and precision_at_budget(0.05) have this threshold"
_PART: Final = "uplift_in_part(1) is the uplift in the first of ten parts, (1, 5) of five"
# What is asked for in another way, by the name that is likely.
_ELSEWHERE: Final = {
    **dict.fromkeys(("uplift", "uplift_by_part", "uplift_by_decile", "uplift_at_k"), _PART),
    **dict.fromkeys(("drift", "psi", "wasserstein", "js_distance", "hellinger"), _DRIFT),
    "threshold_for": _BUDGET,
}


def measure_of(name: str, metric_names: Sequence[str]) -> str:
    """The measure of lists that is meant; UsageError for any other name. metric_names: those to
    suggest then."""
    try:
        return str(sm.parse_measure(name))
    except SettingsError as error:
        every = (
            f"name one of {', '.join(metric_names)}, or a measure" if metric_names else error.hint
        )
        stem = name.partition("(")[0].lower()
        near = _ELSEWHERE.get(stem) or did_you_mean(stem, metric_names, every)
        hint = error.hint if error.hint.startswith("did you mean") and near == every else near
        raise UsageError(
            f"--metrics: expected {'a metric, or ' if metric_names else ''}a measure of lists such "
            f"as ndcg@10, got {formatting.name(name)!r}; {hint}"
        ) from None


def _ids(schema: pa.Schema, column: str) -> str:
    import pyarrow.types as kinds

    return "integer" if kinds.is_integer(schema.field(column).type) else "hashed"


def inputs_of(metrics: Mapping[str, Accumulator]) -> dict[str, dict[str, str]]:
    """The columns of the panel that arguments of other names read."""
    inputs = {
        name: {a: _READS[a] for a in metric.arguments() if a in _READS}
        for name, metric in metrics.items()
    }
    return {name: columns for name, columns in inputs.items() if columns}


def column_of(argument: str, reads: Mapping[str, str]) -> str | None:
    """The column of the file that an argument of a metric reads."""
    return reads.get(_READS.get(argument, argument), reads.get(argument))


def chosen_threshold(result: object, view: str) -> float | None:
    """The threshold that the rows choose for a view, the highest of several; None for others."""
    stem, _, argument = view.partition("(")
    if stem not in _CHOSEN:
        return None
    points = _CHOSEN[stem](result, Fraction(argument.removesuffix(")")))
    return float(points[0].threshold) if len(points) else None
