"""How the numbers of a report were made, in sentences for whoever decides by them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from consumers.counting.experiment_plan import Declared
from consumers.results import printed
from consumers.results.results import ResultRow
from streammetrics.experiments import Plan

GENERAL = (
    "Every event is counted once: states and offsets are committed together, so that a process "
    "that ended and began again neither lost nor doubled one. Refused events are in quarantine, "
    "with their reason.",
    "A state is a sum, so that order and division of the events change no bit of it. Where a value "
    "is approximated, its certain bounds hold the exact one, whatever came.",
)
LOOKING = (
    "Always-valid intervals and p-values hold at all looks together: stopping as soon as they show "
    "a difference, and looking as often as one likes, are right. The interval of one look is right "
    "only at a look that was planned before the first event came. p (Holm) is the always-valid "
    "p-value, adjusted for all decisions together; a guardrail has none, and is judged by its "
    "margin."
)


def method_notes(of: Declared | None, rows: Sequence[ResultRow]) -> Iterator[str]:
    """Paragraphs of HTML."""
    yield from (f"<p>{text}</p>" for text in GENERAL)
    if of is not None:
        yield f"<p>{LOOKING}</p>"
        yield f"<p>{html.escape(_planned(of.plan))}</p>"
    items = "".join(f"<li>{html.escape(text)}</li>" for text in dict.fromkeys(map(_made, rows)))
    yield f"<ul>{items}</ul>"


def _planned(plan: Plan) -> str:
    text = (
        f"Declared: control {printed.name(plan.control)}; decision by "
        f"{', '.join(map(printed.name, plan.decision))}, together at level {plan.level:g}; "
    )
    if plan.guardrails:
        rails = (
            f"{printed.name(one.metric)} within {printed.plain(one.margin)}"
            for one in plan.guardrails
        )
        text += f"guardrails {', '.join(rails)}; "
    if plan.cluster == "none":
        return text + "rows are taken as independent."
    return text + "the rows of a unit hang together, and variances are over groups of units."


def _made(row: ResultRow) -> str:
    text = f"{printed.name(row.metric)}: {printed.name(row.type)}, {printed.name(row.view)}"
    one = row.interval
    if one is None:
        return f"{text}; no interval: there is no formula for it."
    made = f"{text}; {one.level:.0%} interval by {printed.name(one.method)}"
    why = printed.name(one.reason, 100)
    if not one.reason:
        return f"{made}."
    return f"{made}; {why}." if one.defined else f"{made} (undefined for some: {why})."
