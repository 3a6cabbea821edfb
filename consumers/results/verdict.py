"""How an experiment stands, in one plain sentence, and what that rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from consumers.counting.experiment_plan import Declared
from consumers.results.inference_json import (
    comparison_json,
    contamination_json,
    recommendation_json,
    srm_json,
)
from consumers.results.json_text import Json, dumps
from consumers.results.results import ComparisonRow, Results, window_json

State = Literal["none", "waiting", "distrusted", "early", "undecided", "decided"]

_SHOWN: Final = ("better", "worse", "higher", "lower")
_NOTHING: Final = "Too early to say: no variant can be compared with the control yet."


def verdict(of: Declared | None, rows: Sequence[ComparisonRow]) -> tuple[State, str]:
    """The state, and what may be concluded in words; `rows`: the comparisons since the start. What
    to do now is said by `Results.recommendation`."""
    if of is None:
        return "none", "No experiment is declared."
    doubt = next((row.finding for row in rows if row.finding.verdict == "disbelieved"), None)
    if doubt is not None:
        return "distrusted", doubt.sentence
    decisions = [row.finding for row in rows if row.finding.contrast.safeguard is None]
    broken = [row.finding.sentence for row in rows if row.finding.verdict == "broken"]
    if not decisions:
        return "waiting", " ".join(broken) or _NOTHING
    shown = [one for one in decisions if one.verdict in _SHOWN]
    state: State = "undecided"
    if shown:
        state = "decided"
    elif all(one.verdict == "not_started" for one in decisions):
        state = "early"
    told = [one.sentence for one in (shown or decisions)]
    if len(told) > 1 and not shown:
        told = [f"No difference shown yet in any of {len(told)} comparisons."]
        if state == "early":
            told = [f"Too early to say of any of {len(decisions)} comparisons."]
        told += [one.sentence for one in decisions if one.verdict == "faded"]
    elif shown and len(shown) < len(decisions):
        told.append(f"{len(decisions) - len(shown)} of {len(decisions)} comparisons show none yet.")
    return state, " ".join((*broken, *told))


def experiment_json(results: Results, of: Declared | None, looks: int) -> bytes:
    """The bytes of `GET /api/experiment`; results: an answer over the total."""
    rows = [row for row in results.comparisons if row.window.start_ms is None]
    state, sentence = verdict(of, rows)
    return dumps(
        {
            "format": "streammetrics-experiment/1",
            "generation": results.generation,
            "offsets": dict(results.offsets),
            "incomplete": dict(results.incomplete),
            "state": state,
            "sentence": sentence,
            "recommendation": recommendation_json(results.recommendation),
            "plan": _plan_json(of),
            "looks": looks,
            "comparisons": [
                {
                    "window": window_json(row.window),
                    **comparison_json(row.finding, row.looks, decides=row.window.start_ms is None),
                }
                for row in rows
            ],
            "srm": srm_json(results.srm),
            "contamination": contamination_json(results.contamination),
            "notes": list(results.notes),
        }
    )


def _plan_json(of: Declared | None) -> Json:
    if of is None:
        return None
    plan = of.plan
    return {
        "control": plan.control,
        "variants": list(plan.variants),
        "decision": list(plan.decision),
        "guardrails": [one.metric for one in plan.guardrails],
        "level": plan.level,
        "cluster": plan.cluster,
    }
