"""The former name of `streammetrics.present`, for one release."""

import warnings

from streammetrics.present import *  # noqa: F403 - the same names
from streammetrics.present import __all__ as __all__

warnings.warn(
    "streammetrics.figures is now streammetrics.present", DeprecationWarning, stacklevel=2
)
