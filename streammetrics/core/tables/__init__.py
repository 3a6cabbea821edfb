"""Tables of other libraries as arguments of `update`. Needs none of these libraries."""

from streammetrics.core.tables.derived import table_error
from streammetrics.core.tables.requests import Names, TableRequest, needed_columns
from streammetrics.core.tables.table_columns import Table, TableArguments, arguments_of

__all__ = [
    "Names",
    "Table",
    "TableArguments",
    "TableRequest",
    "arguments_of",
    "needed_columns",
    "table_error",
]
