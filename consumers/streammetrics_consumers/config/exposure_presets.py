"""The fields of exposures as other software writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Preset = Literal["openfeature", "growthbook", "flagr", "posthog"]

# By preset, the defaults of keys of [exposures].
PRESETS: Final[Mapping[Preset, Mapping[str, str]]] = {
    "openfeature": {},
    "growthbook": {},
    "flagr": {},
    "posthog": {},
}
