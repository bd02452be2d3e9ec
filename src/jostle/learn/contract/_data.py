"""Everything a folder holds that a method may learn from, each part read when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.report import Glance
from jostle.errors import NotEnoughRuns, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.data import Profile, Runs, Traces


class Data(Glance):
    """Runs, traces and profiles, given or in a folder.

    What is given is taken as it is; what is not is read from the folder, the first time that it is asked
    for. features: (of the workloads, of the platforms), tables keyed by `workload` and `platform`.
    has_given_runs: whether a caller chose the runs, so that nothing else is to be learned from.
    """

    def __init__(
        self,
        runs: Runs | None = None,
        *,
        traces: Traces | None = None,
        profiles: dict[str, Profile] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._runs, self._traces, self._profiles = runs, traces, profiles
        self.has_given_runs = runs is not None

    def _facts(self) -> list[tuple[str, str]]:
        """Say where the data lie, and which kinds of them there are."""
        kinds = [k for k in ("runs", "traces", "profiles") if getattr(self, f"has_{k}", False)]
        count = [] if self._runs is None else [("runs", f"{len(self._runs)}")]
        where = "given" if self.path is None else str(self.path)
        return [("folder", where), ("holds", ", ".join(kinds) or "nothing"), *count]

    @classmethod
    def of(cls, source: Any) -> Data:
        """Make data from what a caller has: Data, the path of a folder, a Dataset, Runs, Traces, or a table
        that runs.from_table takes.

        Raises UsageError for anything else.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, (str, os.PathLike)):
            return cls(path=source)
        from jostle.data import Dataset, Runs, Traces, from_table

        if isinstance(source, Dataset):
            return cls(path=source.path)
        if isinstance(source, Runs):
            return cls(source)
        if isinstance(source, Traces):
            return cls(traces=source)
        if isinstance(source, (Mapping, list)) or hasattr(source, "columns"):
            return cls(from_table(source))
        raise UsageError(
            f"data cannot be a {type(source).__name__}",
            fix="Give jostle.read(folder), runs, traces, a table, or the path of a folder.",
        )

    def with_runs(self, runs: Runs) -> Data:
        """Replace the runs; traces and profiles stay."""
        return Data(runs, traces=self._traces, profiles=self._profiles, path=self.path)

    @property
    def has_runs(self) -> bool:
        """True if runs were given, or the folder holds some."""
        from jostle.data import has_runs

        return self._runs is not None or (self.path is not None and has_runs(self.path))

    @property
    def has_traces(self) -> bool:
        """True if traces were given, or the folder holds some."""
        from jostle.data import has_traces

        return self._traces is not None or (self.path is not None and has_traces(self.path))

    @cached_property
    def runs(self) -> Runs:
        """Raises NotEnoughRuns where there are none, UnreadableFile for damaged ones."""
        from jostle.data import read_runs

        return read_runs(self._folder("runs")) if self._runs is None else self._runs

    @cached_property
    def traces(self) -> Traces:
        """Raises NotEnoughRuns where there are none, UnreadableFile for damaged ones."""
        from jostle.data import read_traces

        return read_traces(self._folder("traces")) if self._traces is None else self._traces

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """Solo profiles by their identifiers. Raises UnreadableFile for damaged ones."""
        from jostle.data import read_profiles

        given = self._profiles
        return read_profiles(self._folder("profiles")) if given is None else given

    @property
    def features(self) -> tuple[pa.Table | None, pa.Table | None]:
        """Feature tables of workloads and of platforms, None for one that is missing."""
        return self.runs.workload_features, self.runs.platform_features

    @property
    def version(self) -> str | None:
        """The version of the folder's runs; None for what is not in a folder or holds none."""
        from jostle.data import Dataset

        if self.path is None or not Dataset(self.path).files():
            return None
        return Dataset(self.path).version()

    def _folder(self, kind: str) -> Path:
        if self.path is None:
            raise NotEnoughRuns(
                f"there are no {kind} in the data",
                fix=f"Give a folder that holds {kind}, or the {kind} themselves.",
            )
        return self.path


def read(folder: str | os.PathLike[str]) -> Data:
    """Read a folder: runs, traces, profiles and features, each when it is first used.

    Parameters
    ----------
    folder :
        Path of a dataset.

    Returns
    -------
    Data
    """
    return Data(path=folder)
