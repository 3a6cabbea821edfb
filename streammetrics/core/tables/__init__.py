"""Tables of other libraries as arguments of `update`. Needs none of these libraries."""

from streammetrics.core.tables.table_columns import (
    Names,
    Table,
    arguments_of,
    columns_read,
)

__all__ = ["Names", "Table", "arguments_of", "columns_read"]
