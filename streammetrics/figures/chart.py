"""Figures as charts of Altair, which notebooks show and which can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from streammetrics.core.errors import SettingsError
from streammetrics.figures.theme import Spec

if TYPE_CHECKING:
    import altair

    Chart: TypeAlias = altair.LayerChart


def chart(spec: Spec) -> Chart:
    """The figure as an Altair chart; SettingsError where Altair is not installed."""
    try:
        import altair
    except ImportError as error:
        raise SettingsError(
            expected="Altair, which draws figures",
            came=str(error),
            where="plot",
            todo="install it with: pip install 'streammetrics[plot]'",
        ) from None
    # What a specification of ours says is valid, as the tests show; and charts are made often.
    found: altair.LayerChart = altair.LayerChart.from_dict(spec, validate=False)
    return found
