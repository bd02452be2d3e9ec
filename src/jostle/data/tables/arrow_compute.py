"""Arrow's functions on columns, which Arrow makes at run time, so that type checkers cannot see them."""

from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute


def with_column(table: pa.Table, name: str, column: Any) -> pa.Table:
    """Return the table with other values in a column, in its place and of its type."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), column)
