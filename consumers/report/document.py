"""A report as one HTML file: no script, no other file, nothing from elsewhere.

Every text that came from a stream or a config goes through `told`, which shows what cannot be
printed by its code and escapes the rest. The same store gives the same bytes: no clock is in them.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator

from consumers.report.material import EFFECTS, Material, Picture
from consumers.report.method import method_notes
from consumers.report.style import STYLE
from consumers.report.tables import effects_table, join_tables, units_table, values_table
from consumers.results import printed
from consumers.results.query import iso_utc
from consumers.results.results import Results, to_json
from consumers.results.screen import rows_shown
from consumers.results.table import blocks_of, heading
from consumers.results.verdict_words import ACTION_SYMBOLS, parted, tone_of
from streammetrics.experiments import Recommendation

NAMES = {
    "windows": "by window",
    "effects": "effect, look by look",
    "roc": "ROC",
    "pr": "precision and recall",
    "reliability": "reliability",
    "scores": "scores",
    "lift": "lift",
    "confusion": "confusion",
    "classes": "by class",
}


def told(text: object, limit: int = 200) -> str:
    """A text from outside, as HTML.

    >>> told("<script>")
    '&lt;script&gt;'
    """
    return html.escape(printed.name(text, limit))


def report_html(material: Material) -> bytes:
    """The file."""
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{style}'"
    title = f"{told(material.name, 80)}, generation {material.results.generation}"
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
    results = material.results
    yield f"<h1>{title}</h1>"
    yield _reading(results)
    if results.incomplete_text is not None:
        yield f'<p class="attention">{told(results.incomplete_text, 1000)}</p>'
    if results.recommendation is not None:
        yield "<h2>What may be concluded</h2>"
        yield _advice(results.recommendation, results)
        if material.verdict:
            yield f"<p>{told(material.verdict, 1000)}</p>"
        said = {row.finding.sentence for row in results.comparisons}
        notes = (note for note in results.notes if note not in said)
        yield from (f'<p class="attention">{told(one, 1000)}</p>' for one in notes)
        if results.comparisons:  # there are none of some slices alone
            yield effects_table(results.comparisons)
        sentences = dict.fromkeys(row.finding.sentence for row in results.comparisons)
        sentences.pop(material.verdict, None)  # it stands above
        yield from (f"<p>{_with_mixed(one, results)}</p>" for one in sentences)
        if results.srm is not None:
            yield units_table(results.srm)
        yield from map(_figure, (p for p in material.pictures if p.kind == EFFECTS))
    else:
        yield from (f'<p class="attention">{told(one, 1000)}</p>' for one in results.notes)
    if results.join is not None:
        yield "<h2>Joined events</h2>"
        yield from (f'<p class="attention">{told(one, 1000)}</p>' for one in results.join.warnings)
        yield from join_tables(results.join)
    yield "<h2>Values</h2>"
    blocks = list(blocks_of(rows_shown(results)))
    for block in blocks:
        yield values_table(told(heading(block)), block, results.variants)
    if not blocks:
        yield "<p>No rows are counted here yet.</p>"
    else:
        yield (
            '<p class="small">certain: the exact value is inside, whatever came. interval: where '
            "the value of all that could have come lies, for one look that was planned.</p>"
        )
    yield from _figures(material)
    yield "<h2>Method</h2>"
    yield from method_notes(material.experiment, rows_shown(results))
    yield "<h2>Every view</h2>"
    shown = {frozenset(row.slice) for row in rows_shown(results)}
    for block in blocks_of([row for row in results.rows if frozenset(row.slice) in shown]):
        yield values_table(told(heading(block)), block, results.variants)
    yield from _provenance(results)


def _advice(found: Recommendation, results: Results) -> str:
    """What to do now, first of all."""
    tone = tone_of(found, results.contamination)
    mark = f'<b aria-hidden="true">{ACTION_SYMBOLS[found.action]}</b>'
    return f'<p class="verdict {tone}">{mark} {_with_mixed(found.sentence, results)}</p>'


def _with_mixed(sentence: str, results: Results) -> str:
    """A sentence as HTML, in which what is said of units of several variants is amber."""
    before, said, after = (
        told(part, 1000) if part else "" for part in parted(sentence, results.contamination)
    )
    return f'{before}<span class="mixed">{said}</span>{after}' if said else before


def _reading(results: Results) -> str:
    newest = "none yet" if results.watermark_ms is None else iso_utc(results.watermark_ms)
    counts = [f"{printed.count(results.rows_read)} events read"]
    marked = False
    for name in ("quarantined", "late", "future", "expired"):
        n: int = getattr(results, name)
        counts.append(f"{printed.count(n)} {name}")
        marked = marked or n > 0
    for name in ("repeated", "skipped"):  # which ask for no attention
        if n := getattr(results, name):
            counts.append(f"{printed.count(n)} {name}")
    look = ' class="attention"' if marked else ""
    return f"<p{look}>{', '.join(counts)}; newest event <span class='whole'>{newest}</span></p>"


def _figures(material: Material) -> Iterator[str]:
    drawn = [picture for picture in material.pictures if picture.kind != EFFECTS]
    if drawn:
        yield "<h2>Figures</h2>"
    last = ""
    for picture in drawn:
        if picture.metric != last:
            yield f"<h3>{told(picture.metric)}</h3>"
            last = picture.metric
        yield _figure(picture)
    if material.undrawn:
        yield f'<p class="small">{material.undrawn} more figures: name one with --metric.</p>'
    yield from (f'<p class="small">Not drawn: {told(why)}.</p>' for why in material.nothing)


def _figure(picture: Picture) -> str:
    name = f"{told(picture.metric)}: {NAMES.get(picture.kind, picture.kind)}"
    alt = told(picture.description, 1000)
    return (
        f'<figure><img src="{picture.source}" alt="{alt}">'
        f"<figcaption>{name}. {alt}</figcaption></figure>"
    )


def _provenance(results: Results) -> Iterator[str]:
    digest = hashlib.sha256(to_json(results)).hexdigest()
    yield "<h2>What was read</h2>"
    yield '<div class="wide"><table><thead><tr><th scope="col">log</th>'
    yield '<th scope="col" class="number">up to offset</th></tr></thead><tbody>'
    for log, offset in sorted(results.offsets.items()):
        cells = f'<th scope="row">{told(log)}</th><td class="number">{printed.count(offset)}</td>'
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"
    yield (
        "<p>The same command with <code>results --json</code> in place of <code>report</code> "
        f"gives these numbers to the bit; its SHA-256 is <code>{digest}</code>.</p>"
    )
