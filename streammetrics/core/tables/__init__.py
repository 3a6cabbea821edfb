"""Tables of other libraries as arguments of `update`. Needs none of these libraries."""

from streammetrics.core.tables.derived import table_error
from streammetrics.core.tables.requests import Names, Request, needed_columns
from streammetrics.core.tables.table_columns import Arguments, Table, arguments_of

__all__ = [
    "Arguments",
    "Names",
    "Request",
    "Table",
    "arguments_of",
    "needed_columns",
    "table_error",
]
