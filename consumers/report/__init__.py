"""A report of a store in one file: what was counted, what may be concluded, and how."""

from consumers.report.document import report_html
from consumers.report.material import Material, gather

__all__ = ["Material", "gather", "report_html"]
