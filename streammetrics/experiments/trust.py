"""Whether an experiment can be trusted: its sample ratio, and units of several variants."""

from __future__ import annotations

from typing import Final

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import SampleRatioFound, in_several_variants, why_unknown
from streammetrics.experiments.plan import Plan
from streammetrics.present.numerals import plain

DISTRUSTED: Final = "Not trustworthy: "
_LARGE_E: Final = 1e6  # above it the exact e-value does not matter


def why_distrusted(plan: Plan, srm: SampleRatioFound, several: UnitsResult | None) -> str:
    """Why this experiment must not be trusted; "" if nothing is known against it."""
    if srm.blocks:
        return f"{DISTRUSTED}units are not split between the variants as planned ({evidence(srm)})."
    if plan.on_several_variants == "error" and several is not None and several.sampled:
        count = in_several_variants(several.units, estimated=several.share < 1)
        return f"{DISTRUSTED}{count}, and the plan allows none."
    why = why_unknown(several) if plan.on_several_variants == "drop" else ""
    if why:
        return f"{DISTRUSTED}the units to drop, seen in several variants, are not all known: {why}."
    return ""


def evidence(srm: SampleRatioFound) -> str:
    """The e-value of a sample-ratio alarm, and the units of its epoch."""

    def text(e: float) -> str:
        return f"above {plain(_LARGE_E)}" if e > _LARGE_E else plain(e)

    since = f" since {srm.epoch}" if srm.epoch and srm.counts != srm.epoch_counts else ""
    counts = ", ".join(f"{arm} {n:,}" for arm, n in srm.epoch_counts or srm.counts)
    clause = f"sample-ratio e-value {text(srm.greatest_e_value)}"
    if srm.log_e < srm.greatest:
        clause += f" at an earlier look, {text(srm.e_value)} now"
    return f"{clause}: {counts}{since}"
