"""A report as one HTML file, without scripts, other files or anything from another host.

Every text from a stream or a config goes through `escaped`, which shows the code of a character
that cannot be printed. The same store gives the same bytes, because no clock is in them. A table
has one line for each number, so that ten variants fit on paper.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final

from streammetrics.present import EXACT_WITHIN
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import ExperimentsAnswer, Join, ResultsAnswer
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposureStatus
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.rows import ComparisonText, SliceRow, WindowFinding
from streammetrics_consumers.render.cells import (
    Block,
    blocks_of,
    effects_of,
    notes_of,
    reading_of,
    rows_shown,
    units_of,
)
from streammetrics_consumers.render.experiment_index_text import index_alarms, index_columns
from streammetrics_consumers.render.exposed_text import (
    decapitalized,
    exposed_tables,
    exposures_counts,
    exposures_window,
)
from streammetrics_consumers.render.join_text import (
    OUTCOME_HEAD,
    join_counts,
    join_outcomes,
    join_window,
)
from streammetrics_consumers.render.material import EFFECTS, Material, Picture
from streammetrics_consumers.render.verdict_words import ACTION_SYMBOLS, parted, tone_of

if TYPE_CHECKING:
    from streammetrics.experiments import Plan, Recommendation, SampleRatioFound

NAMES: Final = {
    "windows": "by window",
    "effects": "effect, look by look",
    "roc": "ROC",
    "pr": "precision and recall",
    "reliability": "reliability",
    "scores": "scores",
    "lift": "lift",
    "uplift": "uplift",
    "uplift_parts": "uplift by part",
    "confusion": "confusion",
    "classes": "by class",
}
GENERAL: Final = (
    "Every event is counted once: states and offsets are committed together, so a process that "
    "stopped and restarted neither lost nor doubled any. Refused events are in quarantine, with "
    "their reason.",
    "A state is a sum, so the order and division of the events change no bit of it. Where a "
    "value is approximated, its certain bounds always hold the exact one.",
)
LOOKING: Final = (
    "Always-valid intervals and p-values hold at all looks together: you may look as often as "
    "you like, and stop as soon as they show a difference. The interval of one look is valid "
    "only at a look that was planned before the first event. p (Holm) is the always-valid "
    "p-value, adjusted for all decisions together; a guardrail has none and is judged by its "
    "margin."
)
# On a screen, on paper, and in black and white.
STYLE: Final = """
:root { font-family: system-ui, sans-serif; line-height: 1.45; color: #1a1a1a; background: #fff; }
body { margin: 0; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 0.25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid #bbb; break-after: avoid; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.25rem; break-after: avoid; }
p { margin: 0.4rem 0; }
.verdict { font-size: 1.15rem; border-left: 4px solid #0072b2; padding: 0.25rem 0 0.25rem 0.75rem; }
.verdict.good { border-color: #00664b; }
.verdict.bad { border-color: #a3260c; }
.verdict.warn { border-color: #8a4b00; }
td:is(.good, .bad, .warn, .neutral) { min-width: 6rem; }
td.good, .verdict.good b { color: #00664b; font-weight: 600; }
td.bad, .verdict.bad b { color: #a3260c; font-weight: 600; }
td.warn, .verdict.warn b, .mixed { color: #8a4b00; font-weight: 600; }
.attention { border-left: 4px solid #d55e00; padding-left: 0.75rem; }
.small { font-size: 0.85rem; color: #444; }
.whole { white-space: nowrap; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0; }
table { min-width: min(100%, 26rem); }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { padding: 0.15rem 0.75rem 0.15rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid #888; }
tbody tr { border-bottom: 1px solid #e4e4e4; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { overflow-wrap: break-word; max-width: 16rem; }
figure { margin: 0.75rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { font-size: 0.85rem; color: #444; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
@page { margin: 15mm; }
@media print {
  main { max-width: none; padding: 0; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
  .wide { overflow: visible; }
}
"""


def escaped(text: object, limit: int = 200) -> str:
    """A text from outside, as HTML.

    >>> escaped("<script>")
    '&lt;script&gt;'
    """
    return html.escape(formatting.name(text, limit))


def report_html(material: Material) -> bytes:
    """The bytes of the file."""
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{style}'"
    title = f"{escaped(material.name, 80)}, generation {material.results.generation}"
    body = "\n".join(_body(material, title))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - streammetrics</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
""".encode("utf-8", "backslashreplace")


def _body(material: Material, title: str) -> Iterator[str]:
    results, shown = material.results, rows_shown(material.results)
    yield f"<h1>{title}</h1>"
    yield from _reading(results)
    if results.index is not None:
        yield from _index(results.index)
    if results.recommendation is None:
        yield from _warnings(results.notes)
    else:
        yield from _conclusions(material, results.recommendation)
    if results.join is not None:
        yield "<h2>Joined events</h2>"
        yield from _warnings(results.join.warnings)
        yield from join_tables(results.join)
    if results.exposure_status is not None:
        yield "<h2>Exposures</h2>"
        yield from _exposures(results.exposure_status)
    yield "<h2>Values</h2>"
    blocks = list(blocks_of(shown, results.tables))
    yield from map(_values, blocks)
    if not blocks:
        yield "<p>No rows are counted here yet.</p>"
    else:
        yield (
            f'<p class="small">{EXACT_WITHIN}: bounds that certainly hold the exact value. CI: a '
            "confidence interval for the value of the whole population, valid at one planned "
            f"look.{BAND if any(block.banded for block in blocks) else ''}</p>"
        )
    yield from _figures(material)
    yield "<h2>Method</h2>"
    yield from _method(None if material.experiment is None else material.experiment.plan, shown)
    yield "<h2>Every view</h2>"
    slices = {frozenset(row.slice) for row in shown}
    rows = [row for row in results.rows if frozenset(row.slice) in slices]
    yield from map(_values, blocks_of(rows, results.tables))
    yield from _provenance(results)


def _index(index: ExperimentsAnswer) -> Iterator[str]:
    """All experiments that are not archived, a line for each, and where they meet and should
    not."""
    shown = index_columns([entry for entry in index.experiments if not entry.archived])
    if shown:
        lines = zip(*([text for text, _ in column] for column in shown.values()), strict=True)
        yield "<h2>Experiments</h2>"
        yield _table("all experiments", tuple(shown), len(shown), lines)
    yield from _warnings(index_alarms(index))


def _reading(results: ResultsAnswer) -> Iterator[str]:
    reading = reading_of(results)
    look = ' class="attention"' if any(is_marked for _, is_marked in reading.counts) else ""
    counts = ", ".join([f"{reading.rows} events read", *(text for text, _ in reading.counts)])
    newest = f"newest event <span class='whole'>{reading.newest}</span>"
    yield f"<p{look}>{counts}; {newest}</p>"
    yield from _warnings([reading.incomplete] if reading.incomplete else [])


def _conclusions(material: Material, advice: Recommendation) -> Iterator[str]:
    """The recommendation, then the comparisons and the units."""
    results = material.results
    yield "<h2>Conclusions</h2>"
    tone = tone_of(advice, results.contamination)
    mark = f'<b aria-hidden="true">{ACTION_SYMBOLS[advice.action]}</b>'
    yield f'<p class="verdict {tone}">{mark} {_with_mixed(advice.sentence, results)}</p>'
    if material.verdict:
        yield f"<p>{escaped(material.verdict, 1000)}</p>"
    yield from _warnings(notes_of(results))
    if results.comparisons:  # an answer for some slices has none
        yield _effects(results.comparisons)
    sentences = dict.fromkeys(row.finding.sentence for row in results.comparisons)
    sentences.pop(material.verdict, None)  # it is shown above
    yield from (f"<p>{_with_mixed(sentence, results)}</p>" for sentence in sentences)
    if results.srm is not None:
        yield _units(results.srm, results.tables.control)
    yield from map(_picture, (p for p in material.pictures if p.kind == EFFECTS))
    if results.exposed_units is not None:
        yield from _exposed(results.exposed_units)


def _exposed(answer: ExposedAnswer) -> Iterator[str]:
    """Of which exposed units the effects are, what the others show, and the days since."""
    yield "<h3>Exposed units</h3>"
    yield f"<p>{escaped(answer.sentence, 1000)}</p>"
    yield from _warnings([f"Not shown: {answer.reason}."] if answer.reason else [])
    if answer.other:
        yield f"<p>Beside it: {escaped(decapitalized(answer.other), 1000)}</p>"
    for table in exposed_tables(answer):
        yield _table(escaped(table.caption), table.head, table.names, table.lines)


def _exposures(status: ExposureStatus) -> Iterator[str]:
    """The exposures of a stream by status."""
    yield from _warnings(status.warnings)
    yield _table(exposures_window(status), ("what", "count", "of"), 1, exposures_counts(status))


def _warnings(sentences: Iterable[str]) -> Iterator[str]:
    yield from (f'<p class="attention">{escaped(sentence, 1000)}</p>' for sentence in sentences)


def _with_mixed(sentence: str, results: ResultsAnswer) -> str:
    """A sentence as HTML, with the words about units of several variants in amber."""
    before, words, after = (
        escaped(part, 1000) if part else "" for part in parted(sentence, results.contamination)
    )
    return f'{before}<span class="mixed">{words}</span>{after}' if words else before


BAND: Final = " Band: it holds for all quantiles together, and at all looks."

# -- tables ------------------------------------------------------------------------------------


def _values(block: Block) -> str:
    """Each value with its bounds and interval."""
    band = ("band",) if block.banded else ()
    bounds = "value", EXACT_WITHIN, block.ci_title, *band
    head = ("metric", "view", block.across or "", *bounds, "rows")
    names = [name for name, _ in block.columns()]
    lines = (
        (
            formatting.name(figure.metric), formatting.name(figure.view), name,
            text.value, text.certain or "exact" * (row.low == row.high), text.interval,
            *([str(text.band or "")] if band else []), text.rows,
        )
        for figure in block.figures()
        for name, text, row in zip(names, figure.texts, figure.rows, strict=True) if text and row
    )  # fmt: skip
    return _table(escaped(block.heading), head, 3, lines)


def _effects(rows: Sequence[WindowFinding]) -> str:
    """Each comparison with its verdict, always-valid interval, and interval of one planned look."""
    texts = effects_of(rows)
    head = ("metric", "treatment - control", "verdict", "effect", "always valid", texts[0].p_title,
            "one look", "looks")  # fmt: skip
    lines = map(_effect, rows, texts)
    return _table("treatment minus control", head, 3, lines, (text.tone for text in texts))


def _effect(row: WindowFinding, text: ComparisonText) -> tuple[str, ...]:
    guard = f", guardrail, margin {text.margin}" if text.margin else ""
    guard += f", rows per unit {text.rows}" if text.rows else ""
    contrast = row.contrast
    return (
        f"{text.label}{guard}",
        " - ".join(map(formatting.name, (contrast.treatment_variant, contrast.control_variant))),
        f"{text.symbol} {text.verdict}",
        text.effect, text.always, text.p, text.once, formatting.count(row.looks),
    )  # fmt: skip


def _units(sample_ratio: SampleRatioFound, control: str) -> str:
    """The units of each variant, against the planned shares."""
    units, caption = units_of(sample_ratio, control), "units"
    if units.e_value:
        e_value = html.escape(units.e_value)
        caption += f"; against the planned shares: e-value {e_value} (1,000 is an alarm)"
    return _table(caption, ("variant", "units"), 1, units.counts)


def join_tables(join: Join) -> Iterator[str]:
    """The tables of a join: its events by status, and its outcomes."""
    yield _table(join_window(join), ("what", "count", "share"), 1, join_counts(join))
    yield _table("outcomes of closed label windows", OUTCOME_HEAD, 1, join_outcomes(join))


def _table(
    caption: str,
    head: Sequence[str],
    names: int,
    lines: Iterable[tuple[str, ...]],
    tones: Iterable[str] = repeat(""),
) -> str:
    """A table. The first `names` cells of a line are its names, the others are numbers; the last
    name has the tone of its line. The caption is HTML already."""
    classes = [""] * names + [' class="number"'] * (len(head) - names)
    titles = "".join(
        f'<th scope="col"{look}>{html.escape(title)}</th>'
        for look, title in zip(classes, head, strict=True)
    )
    body = ""
    for line, tone in zip(lines, tones, strict=False):
        row_classes = [f' class="{tone}"' if tone and i == names - 1 else look
                       for i, look in enumerate(classes)]  # fmt: skip
        first, *later_texts = map(html.escape, line)
        cells = (
            f"<td{look}>{text}</td>"
            for look, text in zip(row_classes[1:], later_texts, strict=True)
        )
        body += f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>\n'
    return (
        f'<div class="wide"><table><caption>{caption}</caption>'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _provenance(results: ResultsAnswer) -> Iterator[str]:
    digest = hashlib.sha256(to_json(results)).hexdigest()
    yield "<h2>Logs read</h2>"
    yield '<div class="wide"><table><thead><tr><th scope="col">log</th>'
    yield '<th scope="col" class="number">up to offset</th></tr></thead><tbody>'
    for log, offset in sorted(results.offsets.items()):
        number = formatting.count(offset)
        yield f'<tr><th scope="row">{escaped(log)}</th><td class="number">{number}</td></tr>'
    yield "</tbody></table></div>"
    yield (
        "<p>The same command with <code>results --json --views all</code> in place of "
        "<code>report</code> gives these numbers to the bit; its SHA-256 is "
        f"<code>{digest}</code>.</p>"
    )


# -- figures -----------------------------------------------------------------------------------


def _figures(material: Material) -> Iterator[str]:
    drawn = [picture for picture in material.pictures if picture.kind != EFFECTS]
    if drawn:
        yield "<h2>Figures</h2>"
    last = ""
    for picture in drawn:
        if picture.metric != last:
            yield f"<h3>{escaped(picture.metric)}</h3>"
            last = picture.metric
        yield _picture(picture)
    if material.undrawn:
        yield f'<p class="small">{material.undrawn} more figures: name one with --metric.</p>'
    yield from (f'<p class="small">Not drawn: {escaped(why)}.</p>' for why in material.nothing)


def _picture(picture: Picture) -> str:
    name = f"{escaped(picture.metric)}: {NAMES.get(picture.kind, picture.kind)}"
    alt = escaped(picture.description, 1000)
    return (
        f'<figure><img src="{picture.source}" alt="{alt}">'
        f"<figcaption>{name}. {alt}</figcaption></figure>"
    )


# -- method ------------------------------------------------------------------------------------


def _method(plan: Plan | None, rows: Sequence[SliceRow]) -> Iterator[str]:
    """How the numbers are computed, for the people who decide by them."""
    yield from (f"<p>{text}</p>" for text in GENERAL)
    if plan is not None:
        yield f"<p>{LOOKING}</p>"
        yield f"<p>{html.escape(_planned(plan))}</p>"
    items = "".join(f"<li>{html.escape(text)}</li>" for text in dict.fromkeys(map(_made, rows)))
    yield f"<ul>{items}</ul>"


_UNITS: Final = {
    "so_far": "means and rates of units are of all exposed ones so far; ",
    "closed": "means and rates of units are of those whose window after the exposure is over; ",
}


def _planned(plan: Plan) -> str:
    name, plain = formatting.name, formatting.plain
    text = (
        f"Declared: control {name(plan.control)}; decision by "
        f"{', '.join(map(name, plan.decision))}, together at level {plain(plan.level)}; "
    )
    if plan.guardrails:
        rails = (
            name(guardrail.metric)
            + (f" within {plain(guardrail.margin)}" if guardrail.required else " (watched)")
            for guardrail in plan.guardrails
        )
        text += f"guardrails {', '.join(rails)}; "
    text += _UNITS.get(plan.unit_view, "")
    if plan.cluster == "none":
        return text + "rows are taken as independent."
    return text + "the rows of a unit are correlated, and variances are over groups of units."


def _made(row: SliceRow) -> str:
    name = formatting.name
    text = f"{name(row.metric)}: {name(row.type)}, {name(row.view)}"
    interval = row.interval
    if interval is None:
        return f"{text}; no interval: there is no formula for it."
    sentence, why = (
        f"{text}; {formatting.level(interval.level)} interval by {name(interval.method)}",
        name(interval.reason, 100),
    )
    if not interval.reason:
        return f"{sentence}."
    defined = interval.lower > -math.inf or interval.upper < math.inf
    return f"{sentence}; {why}." if defined else f"{sentence} (undefined for some: {why})."
