"""How an experiment stands, in one plain sentence, and what that rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from consumers.experiment.reading import Declared
from consumers.results.inference_json import comparison_json, srm_json
from consumers.results.json_text import Json, dumps
from consumers.results.results import ComparisonRow, Results, window_json
from streammetrics.experiments import Finding

State = Literal["none", "waiting", "distrusted", "early", "undecided", "decided"]


def verdict(of: Declared | None, rows: Sequence[ComparisonRow]) -> tuple[State, str]:
    """The state, and the sentence for a person; `rows`: the comparisons since the start."""
    if of is None:
        return "none", "No experiment is declared."
    decisions = [row.finding for row in rows if row.finding.contrast.safeguard is None]
    doubt = next((row.finding for row in rows if row.finding.distrusted), None)
    if doubt is not None:
        return "distrusted", doubt.sentence
    if not decisions:
        return "waiting", "Too early to say: no variant can be compared with the control yet."
    broken = [row.finding.sentence for row in rows if _is_broken(row.finding)]
    shown = [one for one in decisions if one.anytime_lower > 0 or one.anytime_upper < 0]
    state: State = "undecided"
    if shown:
        state = "decided"
    elif all(one.gated or one.reason for one in decisions):
        state = "early"
    told = [one.sentence for one in (shown or decisions)]
    if len(told) > 1 and not shown:
        told = [f"No difference shown yet in any of {len(told)} comparisons."]
        if state == "early":
            told = [f"Too early to say of any of {len(decisions)} comparisons."]
    elif shown and len(shown) < len(decisions):
        told.append(f"{len(decisions) - len(shown)} of {len(decisions)} comparisons show none yet.")
    return state, " ".join((*broken, *told))


def _is_broken(finding: Finding) -> bool:
    """Whether a guardrail is shown to be broken."""
    rail = finding.contrast.safeguard
    if rail is None:
        return False
    if rail.higher_is_better:
        return finding.anytime_upper < -rail.margin
    return finding.anytime_lower > rail.margin


def experiment_json(results: Results, of: Declared | None, looks: int) -> bytes:
    """The bytes of `GET /api/experiment`; results: an answer over the total."""
    rows = [row for row in results.comparisons if row.window.start_ms is None]
    state, sentence = verdict(of, rows)
    return dumps(
        {
            "format": "streammetrics-experiment/1",
            "generation": results.generation,
            "offsets": dict(results.offsets),
            "state": state,
            "sentence": sentence,
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
