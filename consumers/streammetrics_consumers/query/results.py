"""What a store says, as rows: one for each view of each metric of each slice of each window.

`to_json` gives the bytes of the interface. They are a function of the rows that were counted and
of the offsets read: no clock, host or worker is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streammetrics import Accumulator, Interval
from streammetrics.experiments import Contamination, Finding, Recommendation, SampleRatioFound
from streammetrics.results import Bounded, counts_of, headlines_of, interval_of, views_of
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.answers import Window, number
from streammetrics_consumers.query.join_status import JoinFound
from streammetrics_consumers.query.query import Slice, SliceValue

SINCE_THE_START: Final = Window(None, None, "total")
_COMPARED: Final = (  # fields of the library's Comparison that are numbers, under their own names
    *("control", "treatment", "effect_size", "effect_size_ci_lower", "effect_size_ci_upper"),
    *("rel_effect_size", "rel_effect_size_ci_lower", "rel_effect_size_ci_upper", "pvalue"),
    *("statistic", "std_error", "df", "level", "n", "n_eff", "deff"),
)


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One number with its certain bounds, what it counted, and the digest of its state.

    slice: name to value; the sum of the keys past `max_keys` of a grouping by `names` is
    `{"(other)": names}`. headline: whether a table shows this view unasked. interval: the
    statistical one, None where there is no formula.
    """

    window: Window
    slice: Slice
    metric: str
    type: str
    view: str
    value: float
    low: float
    high: float
    counts: Mapping[str, int]
    digest: str
    headline: bool = True
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """What may be concluded of one metric and treatment, over one window, after some looks."""

    window: Window
    finding: Finding
    looks: int


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to a query: how far the log was read, and the rows in their order. `variants` are
    the declared ones in the order of the config, by which a table has its columns.

    comparisons, srm, notes: of the experiment, if there is one, over all rows: what may be
    concluded by window, whether units fell to variants as planned since the start, and sentences
    about the whole. recommendation, contamination: what to do now, and units of several variants;
    both since the start, whatever was asked for. join: how it stands, where events are joined.
    incomplete: the logs of which the store has counted less than it had before it went back, each
    with the offset up to which it was counted.
    """

    generation: int
    offsets: Mapping[str, int]
    rows_read: int
    quarantined: int
    late: int
    future: int
    expired: int
    watermark_ms: int | None
    rows: tuple[ResultRow, ...]
    variants: tuple[str, ...] = ()
    comparisons: tuple[ComparisonRow, ...] = ()
    srm: SampleRatioFound | None = None
    notes: tuple[str, ...] = ()
    repeated: int = 0
    skipped: int = 0
    join: JoinFound | None = None
    recommendation: Recommendation | None = None
    contamination: Contamination | None = None
    incomplete: Mapping[str, int] = field(default_factory=dict)

    @property
    def incomplete_text(self) -> str | None:
        """In a sentence which logs are incomplete; None where none is."""
        if not self.incomplete:
            return None
        logs = ", ".join(
            f"{name} is counted up to {self.offsets.get(name, 'nothing')}, and was up to {known}"
            for name, known in sorted(self.incomplete.items())
        )
        return f"incomplete: the store went back, and what it lost is counted again: {logs}"


def rows_of(
    window: Window,
    slice_: Slice,
    metric: str,
    state: Accumulator,
    *,
    headlines: bool = False,
) -> list[ResultRow]:
    """A row for each view of a plain metric's state, the view that it is known by first;
    `headlines`: for those alone that it is known by, which costs a fraction."""
    result = state.compute()
    counts, digest, kind = counts_of(result), state.digest(), type(state).__name__
    known = headlines_of(result)
    rows = []
    for view, figure in views_of(result, headlines=headlines).items():
        value, low, high = bounds(figure)
        interval = interval_of(result, state, view)  # users are known, or rows independent
        rows.append(
            ResultRow(
                window=window,
                slice=slice_,
                metric=metric,
                type=kind,
                view=view,
                value=value,
                low=low,
                high=high,
                counts=counts,
                digest=digest,
                headline=view in known,
                interval=interval if interval.formula else None,
            )
        )
    return rows


def bounds(figure: float | Bounded) -> tuple[float, float, float]:
    """(value, low, high): three times the value where it is exact."""
    if isinstance(figure, Bounded):
        return float(figure), float(figure.low), float(figure.high)
    return figure, figure, figure


def in_order(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """By window (since the start first, then in order of time), slice, metric and view."""
    return tuple(sorted(rows, key=lambda r: (_window_key(r.window), slice_key(r.slice), r.metric,
                                             r.view)))  # fmt: skip


def slice_key(slice_: Slice) -> tuple[object, ...]:
    """Sorts slices: by their names, then by their values (nothing, numbers, texts), others last."""
    names = tuple(sorted(slice_))
    return (len(names), names, tuple(_value_key(slice_[name]) for name in names))


def to_json(results: Results) -> bytes:
    """The bytes of `results --json` and of `GET /api/results`."""
    return answers.dumps(results_answer(results))


def results_answer(results: Results) -> answers.Results:
    """The answer that they are made of."""
    return answers.Results(
        generation=results.generation,
        offsets=results.offsets,
        incomplete=results.incomplete,
        rows_read=results.rows_read,
        quarantined=results.quarantined,
        late=results.late,
        future=results.future,
        expired=results.expired,
        repeated=results.repeated,
        skipped=results.skipped,
        watermark_ms=results.watermark_ms,
        results=tuple(_result(row) for row in results.rows),
        comparisons=tuple(comparison_answer(row) for row in results.comparisons),
        recommendation=recommendation_answer(results.recommendation),
        contamination=contamination_answer(results.contamination),
        srm=sample_ratio_answer(results.srm),
        notes=results.notes,
        join=None if results.join is None else results.join.answer(),
    )


def comparison_answer(row: ComparisonRow) -> answers.Comparison:
    """A comparison over one window, as it stands after its looks."""
    finding, contrast = row.finding, row.finding.contrast
    found, rail, holm = contrast.comparison, contrast.safeguard, None
    if row.window.start_ms is None and finding.holm is not None:  # decisions rest on all rows
        holm = number(finding.holm)
    margin = None
    if rail is not None:
        margin = number(-rail.margin if rail.higher_is_better else rail.margin)
    compared: dict[str, Any] = {name: number(getattr(found, name)) for name in _COMPARED}
    return answers.Comparison(
        window=row.window,
        metric=contrast.metric,
        view=contrast.view,
        control_variant=contrast.control_variant,
        treatment_variant=contrast.treatment_variant,
        guardrail=rail is not None,
        **compared,
        method=found.method,
        reason=found.reason,
        anytime_lower=number(finding.anytime_lower),
        anytime_upper=number(finding.anytime_upper),
        anytime_pvalue=number(finding.anytime_pvalue),
        anytime_reason=finding.reason,
        holm_pvalue=holm,
        e_value=number(finding.e_value),
        gated=finding.gated,
        distrusted=finding.distrusted,
        verdict=finding.verdict,
        direction=answers.Direction(finding.direction.better, finding.direction.target),
        faded=finding.faded,
        margin=margin,
        looks=row.looks,
        sentence=finding.sentence,
    )


def recommendation_answer(found: Recommendation | None) -> answers.Recommendation | None:
    """What to do now; None where there is no experiment."""
    if found is None:
        return None
    return answers.Recommendation(found.action, found.sentence, found.rests_on, found.treatments)


def contamination_answer(found: Contamination | None) -> answers.Contamination | None:
    """The units that were seen in several variants; None where units are not counted."""
    if found is None:
        return None
    return answers.Contamination(
        number(found.units), number(found.share), found.dropped, found.warning, found.sentence
    )


def sample_ratio_answer(found: SampleRatioFound | None) -> answers.SampleRatio | None:
    """The sample ratio check; None where there is no experiment."""
    if found is None:
        return None
    return answers.SampleRatio(
        number(found.pvalue), number(found.e_value), dict(found.counts), found.reason
    )


def _result(row: ResultRow) -> answers.Result:
    return answers.Result(
        window=row.window,
        slice=row.slice,
        metric=row.metric,
        type=row.type,
        view=row.view,
        value=number(row.value),
        low=number(row.low),
        high=number(row.high),
        counts=row.counts,
        digest=row.digest,
        interval=_interval(row.interval),
    )


def _interval(found: Interval | None) -> answers.Interval | None:
    if found is None:
        return None
    return answers.Interval(
        lower=number(found.lower),
        upper=number(found.upper),
        level=found.level,
        method=found.method,
        n=found.n,
        n_eff=number(found.n_eff),
        deff=number(found.deff),
        reason=found.reason,
    )


def _window_key(window: Window) -> tuple[int, int, int]:
    if window.start_ms is None or window.end_ms is None:
        return (0, 0, 0)
    return (1, window.start_ms, window.end_ms)


def _value_key(value: SliceValue) -> tuple[int, int, str, tuple[str, ...]]:
    match value:
        case None:
            return (0, 0, "", ())
        case int():
            return (1, value, "", ())
        case str():
            return (2, 0, value, ())
    return (3, 0, "", value)
