"""Figures without a browser, and the JavaScript that draws them in one; both by vl-convert."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from streammetrics.core.errors import SettingsError
from streammetrics.figures.theme import Spec

VEGA_LITE: Final = "6.4"
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_EXPORTS: Final = "export {vegaEmbed, vega, vegaLite};"


def svg(spec: Spec) -> str:
    """The figure as an SVG picture; SettingsError where vl-convert-python is not installed.

    What XML has no letters for is drawn by its code: vl-convert ends the process over it.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise _missing(error) from None
    drawn = {key: _drawable(one) for key, one in spec.items()}
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


def _drawable(value: object) -> object:
    """A specification without what XML cannot hold.

    >>> _drawable({"title": ["a\\x1b[31m"]})
    {'title': ['a\\\\x1b[31m']}
    """
    if isinstance(value, str):
        return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {key: _drawable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(one) for one in value]
    return value


def _missing(error: ImportError) -> SettingsError:
    return SettingsError(
        expected="vl-convert-python, which draws figures",
        came=str(error),
        where="figures",
        todo="install it with: pip install 'streammetrics[plot]'",
    )
