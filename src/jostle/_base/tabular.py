"""What everything of n rows can do: be indexed, iterated and made a table of pandas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self, overload

import numpy as np

from jostle.errors import UsageError


def index_of(table: Any) -> Any:
    """Return the index of a DataFrame; None for every other table."""
    index = getattr(table, "index", None) if hasattr(table, "columns") else None
    return None if callable(index) else index


class Tabular(ABC):
    """Index, iterate and convert n rows that an Arrow table can hold."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def to_table(self) -> Any:
        """Return an Arrow table with one row for each entry, in order."""

    @abstractmethod
    def take(self, indices: Any) -> Self:
        """Select rows. indices: (m,) row numbers, or an (n,) boolean mask."""

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row for each entry, in order, under the index of the DataFrame
        that was asked, if there was one. Raises UsageError without pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise UsageError(
                "pandas is not installed", fix="Run pip install pandas, or take .to_table()."
            ) from None
        frame, index = self.to_table().to_pandas(), getattr(self, "index", None)
        return frame if index is None else frame.set_axis(pandas.Index(index), axis=0)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice | Sequence[Any] | np.ndarray) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        """Return one row as a dict by its number, or several rows by a slice, a mask or a list."""
        if isinstance(index, (int, np.integer)):
            number = range(len(self))[int(index)]
            return self.take(np.array([number])).to_table().to_pylist()[0]
        return self.take(np.arange(len(self))[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through the rows, each a dict."""
        for batch in self.to_table().to_batches(1000):
            yield from batch.to_pylist()
