"""What a module from elsewhere may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import wasmtime

# Of linear memory, for each instance: above what any shipped kernel needs (64 MiB), below what hurts.
MOST_MEMORY_BYTES = 2 << 30
_MOST_TABLE_ELEMENTS = 10_000_000


def limited_store(engine: wasmtime.Engine) -> Any:
    """A store whose instances cannot grow beyond the limit: growing further is refused to the module, and
    one that needs more from the start is not instantiated."""
    import wasmtime

    store = wasmtime.Store(engine)
    store.set_limits(memory_size=MOST_MEMORY_BYTES, table_elements=_MOST_TABLE_ELEMENTS)
    return store
