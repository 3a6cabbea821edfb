"""Figures without a browser, and the JavaScript that draws them in one; both by vl-convert."""

from __future__ import annotations

from functools import cache
from typing import Final, cast

from streammetrics.core.errors import SettingsError
from streammetrics.present.spec import all_drawable
from streammetrics.present.theme import Spec

VEGA_LITE: Final = "6.4"
_EXPORTS: Final = "export {vegaEmbed, vega, vegaLite};"


def svg(spec: Spec) -> str:
    """The figure as an SVG picture; SettingsError where vl-convert-python is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise _missing(error) from None
    drawn = cast("Spec", all_drawable(spec))
    found: str = vl_convert.vegalite_to_svg(drawn, vl_version=VEGA_LITE, allowed_base_urls=[])
    return found


@cache
def charts_javascript() -> str:
    """An ES module that exports vegaEmbed, vega and vegaLite, out of the installed package.

    It is made once, in about three seconds. Draw with the options `ast: true` (no code is made from
    text), `defaultStyle: false` and `tooltip: {disableDefaultStyle: true}` under a strict policy.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise _missing(error) from None
    return vl_convert.javascript_bundle(_EXPORTS, vl_version=VEGA_LITE)


def _missing(error: ImportError) -> SettingsError:
    return SettingsError(
        expected="vl-convert-python, which draws figures",
        got=str(error),
        where="figures",
        hint="install it with: pip install 'streammetrics[plot]'",
    )
