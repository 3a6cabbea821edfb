"""Comparison of two variants: intervals and e-values valid at every look, and sanity checks."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.combine.units import keeps_units
    from streammetrics.experiments.assignment import Contamination, SampleRatio, SampleRatioFound
    from streammetrics.experiments.compared import Evidence
    from streammetrics.experiments.comparison import Comparison, compare
    from streammetrics.experiments.confidence_sequence import ConfidenceSequence, Guardrail
    from streammetrics.experiments.contrast import Contrast
    from streammetrics.experiments.covariate import (
        Covariate,
        PlannedCovariate,
        UserTotals,
        user_slope,
    )
    from streammetrics.experiments.experiment import Experiment, needs_one_epoch
    from streammetrics.experiments.gate import Gate, gates
    from streammetrics.experiments.monitor import Look, Monitor, Watched
    from streammetrics.experiments.multiplicity import adjust_fdr, adjust_fwer
    from streammetrics.experiments.one_look import Anytime, Guarded
    from streammetrics.experiments.plan import Horizon, Plan, Safeguard
    from streammetrics.experiments.report import Finding, Outcome, Report
    from streammetrics.experiments.rows_per_unit import RowsPerUnit
    from streammetrics.experiments.verdict import ACTIONS, VERDICTS, Action, Recommendation, Verdict

__all__ = [
    "ACTIONS",
    "VERDICTS",
    "Action",
    "Anytime",
    "Comparison",
    "ConfidenceSequence",
    "Contamination",
    "Contrast",
    "Covariate",
    "Evidence",
    "Experiment",
    "Finding",
    "Gate",
    "Guarded",
    "Guardrail",
    "Horizon",
    "Look",
    "Monitor",
    "Outcome",
    "Plan",
    "PlannedCovariate",
    "Recommendation",
    "Report",
    "RowsPerUnit",
    "Safeguard",
    "SampleRatio",
    "SampleRatioFound",
    "UserTotals",
    "Verdict",
    "Watched",
    "adjust_fdr",
    "adjust_fwer",
    "compare",
    "gates",
    "keeps_units",
    "needs_one_epoch",
    "user_slope",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.combine.units": "keeps_units",
            "streammetrics.experiments.assignment": "Contamination SampleRatio SampleRatioFound",
            "streammetrics.experiments.compared": "Evidence",
            "streammetrics.experiments.comparison": "Comparison compare",
            "streammetrics.experiments.confidence_sequence": "ConfidenceSequence Guardrail",
            "streammetrics.experiments.contrast": "Contrast",
            "streammetrics.experiments.covariate": (
                "Covariate PlannedCovariate UserTotals user_slope"
            ),
            "streammetrics.experiments.experiment": "Experiment needs_one_epoch",
            "streammetrics.experiments.gate": "Gate gates",
            "streammetrics.experiments.monitor": "Look Monitor Watched",
            "streammetrics.experiments.multiplicity": "adjust_fdr adjust_fwer",
            "streammetrics.experiments.one_look": "Anytime Guarded",
            "streammetrics.experiments.plan": "Horizon Plan Safeguard",
            "streammetrics.experiments.report": "Finding Outcome Report",
            "streammetrics.experiments.rows_per_unit": "RowsPerUnit",
            "streammetrics.experiments.verdict": "ACTIONS VERDICTS Action Recommendation Verdict",
        },
    )
