"""Products and maps of metrics: what is true of a metric is true of these."""

from streammetrics.combine.panel import Panel, PanelResult
from streammetrics.combine.per_key import KeyedResult, PerKey
from streammetrics.combine.windows import Windows, WindowsResult

__all__ = ["KeyedResult", "Panel", "PanelResult", "PerKey", "Windows", "WindowsResult"]
