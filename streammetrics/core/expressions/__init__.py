"""Columns and conditions written as expressions, of operations that round correctly."""

from streammetrics.core.expressions.expression import (
    Evaluated,
    Expression,
    Unknown,
    expression_of,
)
from streammetrics.core.expressions.field_kinds import FieldKind

__all__ = ["Evaluated", "Expression", "FieldKind", "Unknown", "expression_of"]
