"""Co-locations as integer codes: which workload, on which platform, beside which co-runners.

A run asks for three names and a list; ten million of them fit in memory only as codes. Names stand
once in a sorted vocabulary, and co-runners in compressed sparse rows (offsets and one flat array).
This is the one type that predictors take, so it needs NumPy and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Annotated, Any

import numpy as np

from jostle._base.documents import shortened
from jostle._base.report import Glance
from jostle._base.tabular import Tabular
from jostle._base.tensors import Codec
from jostle.errors import BadRows, UnknownName

_SHOWN = 20


def _to_json(covariates: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    """Numbers, none where unknown, and text."""
    return {
        name: [None if one != one else one for one in values.tolist()]
        for name, values in covariates.items()
    }


def _from_json(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    return {name: covariate_of(values) for name, values in columns.items()}


def covariate_of(values: Sequence[Any]) -> np.ndarray:
    """Return (n,) float64, NaN where unknown, or text, empty where unknown."""
    if any(isinstance(one, str) for one in values):
        return np.array(["" if one is None else str(one) for one in values])
    return np.array([np.nan if one is None else one for one in values], np.float64)


Covariates = Annotated[Mapping[str, np.ndarray], Codec(_to_json, _from_json)]
_MANY_NAMES = 5_000
_MANY: dict[int, tuple[tuple[str, ...], dict[str, int]]] = {}


@dataclass(frozen=True, eq=False, repr=False)
class Colocations(Tabular, Glance):
    """Immutable table of n co-locations.

    workload_names: sorted vocabulary of workloads and co-runners. platform_names: sorted vocabulary.
    workload: (n,) int32 into workload_names. platform: (n,) int32 into platform_names.
    corunner_offsets: (n + 1,) int64; row i's co-runners are corunner[offsets[i]:offsets[i + 1]].
    corunner: (m,) int32 into workload_names, a multiset in each row, sorted by name.
    covariates: what is known of each run before it starts, by name: (n,) numbers, NaN where unknown, or (n,)
    text, empty where unknown.

    Raises BadRows when the arrays do not fit together.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload: np.ndarray
    platform: np.ndarray
    corunner_offsets: np.ndarray
    corunner: np.ndarray
    covariates: Covariates = field(default_factory=dict)

    def __post_init__(self) -> None:
        types = {"corunner_offsets": np.int64}
        for name in ("workload", "platform", "corunner_offsets", "corunner"):
            array = np.asarray(getattr(self, name), dtype=types.get(name, np.int32)).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "workload_names", tuple(self.workload_names))
        object.__setattr__(self, "platform_names", tuple(self.platform_names))
        _check_codes(self)

    @classmethod
    def from_columns(
        cls,
        *,
        workload: Sequence[str] | np.ndarray,
        platform: Sequence[str] | np.ndarray,
        corunners: Sequence[Iterable[str]] | np.ndarray | None = None,
        covariates: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
    ) -> Colocations:
        """Make co-locations from columns of names; the order of co-runners in a row does not matter.

        workload, platform: n names. corunners: n lists of names, empty where the workload runs
        alone; None means that all do. covariates: n numbers or texts of each name. Raises BadRows for
        unequal lengths and for names that are empty or not text.
        """
        workload, platform = _listed(workload, "workload"), _listed(platform, "platform")
        rows = [()] * len(workload) if corunners is None else _listed(corunners, "corunners")
        known = {name: _listed(values, name) for name, values in (covariates or {}).items()}
        lengths = {"workload": len(workload), "platform": len(platform), "corunners": len(rows)}
        lengths |= {name: len(values) for name, values in known.items()}
        if len(set(lengths.values())) > 1:
            sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise BadRows(f"the columns differ in length: {sizes}")
        counts, flat = _flattened(rows)
        workload_set, platform_set = _vocabulary(workload), _vocabulary(platform)
        corunner_set = _vocabulary(flat)
        if not all(map(_all_names, (workload_set, platform_set, corunner_set))):
            raise _bad_names(workload, platform, rows)
        workload_names = tuple(sorted(workload_set | corunner_set))
        platform_names = tuple(sorted(platform_set))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(
            workload_names,
            platform_names,
            _encode(workload, workload_names),
            _encode(platform, platform_names),
            offsets,
            sort_inside_rows(_encode(flat, workload_names), offsets),
            {name: covariate_of(values) for name, values in known.items()},
        )

    def to_table(self) -> Any:
        """Return an Arrow table with the columns workload, platform, corunners and the covariates."""
        import pyarrow as pa

        names = pa.string()
        kinds = {"workload": names, "platform": names, "corunners": pa.list_(names)}
        columns = self.to_columns()
        table = {name: pa.array(columns[name], kind) for name, kind in kinds.items()}
        return pa.table(table | {name: pa.array(one) for name, one in self.covariates.items()})

    def __len__(self) -> int:
        return len(self.workload)

    def _facts(self) -> list[tuple[str, str]]:
        """Count what is asked about."""
        counts = self.number_of_corunners
        return [
            ("colocations", f"{len(self)}"),
            ("workloads", f"{len(self.workload_names)}"),
            ("platforms", f"{len(self.platform_names)}"),
            ("solo", f"{int((counts == 0).sum())}"),
            ("co-runners up to", f"{int(counts.max(initial=0))}"),
        ]

    def __eq__(self, other: object) -> bool:
        """Return whether both name the same co-locations in the same order, whatever the vocabularies."""
        if not isinstance(other, Colocations):
            return NotImplemented
        if len(self) != len(other):
            return False
        workload, platform, corunner = other.recode(self.workload_names, self.platform_names)
        return (
            np.array_equal(self.workload, workload)
            and np.array_equal(self.platform, platform)
            and np.array_equal(self.corunner_offsets, other.corunner_offsets)
            and np.array_equal(self.corunner, corunner)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (equality reads every row)

    @cached_property
    def number_of_corunners(self) -> np.ndarray:
        """Number of co-runners, (n,) int64; 0 for a workload alone."""
        counts = np.diff(self.corunner_offsets)
        counts.flags.writeable = False
        return counts

    @property
    def corunner_row(self) -> np.ndarray:
        """The row that each co-runner belongs to, (m,) int64."""
        return np.repeat(np.arange(len(self)), self.number_of_corunners)

    @cached_property
    def group(self) -> np.ndarray:
        """Codes that are equal exactly for equal co-locations, (n,) int64."""
        base = np.int64(len(self.workload_names) + 1)
        key = self.platform.astype(np.int64) * base + self.workload
        return _row_codes(key, self.corunner, self.corunner_offsets, base)

    @cached_property
    def together(self) -> np.ndarray:
        """Codes that are equal if the same workloads share the same platform, whichever of them is the
        workload, (n,) int64: both sides of a pair have one code."""
        counts = self.number_of_corunners + 1
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        everyone = np.insert(self.corunner, self.corunner_offsets[:-1], self.workload)
        base = np.int64(len(self.workload_names) + 1)
        return _row_codes(
            self.platform.astype(np.int64), sort_inside_rows(everyone, offsets), offsets, base
        )

    def take(self, indices: Any) -> Colocations:
        """Return the rows at these indices (or where a boolean mask is true); vocabularies are kept."""
        indices = np.arange(len(self))[indices].reshape(-1)
        counts = self.number_of_corunners[indices]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        shift = np.repeat(self.corunner_offsets[:-1][indices] - offsets[:-1], counts)
        return Colocations(
            self.workload_names,
            self.platform_names,
            self.workload[indices],
            self.platform[indices],
            offsets,
            self.corunner[np.arange(len(shift)) + shift],
            {name: values[indices] for name, values in self.covariates.items()},
        )

    def alone(self) -> Colocations:
        """Return the same workloads on the same platforms, without co-runners."""
        none = np.zeros(len(self) + 1, np.int64)
        return replace(self, corunner_offsets=none, corunner=np.zeros(0, np.int32))

    def known_in(self, workload_names: Sequence[str], platform_names: Sequence[str]) -> np.ndarray:
        """Return (n,) bool: where these vocabularies have all names of the row, those of co-runners, too."""
        workload, platform, corunner = self.recode(workload_names, platform_names)
        row = self.corunner_row
        known = (workload >= 0) & (platform >= 0)
        known[row[corunner < 0]] = False
        return known

    @staticmethod
    def concatenate(parts: Sequence[Colocations]) -> Colocations:
        """Return all rows of all parts, in order, over the union of their vocabularies."""
        workload_names = tuple(sorted(set().union(*(part.workload_names for part in parts))))
        platform_names = tuple(sorted(set().union(*(part.platform_names for part in parts))))
        codes = [part.recode(workload_names, platform_names) for part in parts]
        counts = [part.number_of_corunners for part in parts]
        none = np.zeros(0, np.int32)
        return Colocations(
            workload_names,
            platform_names,
            np.concatenate([none, *(workload for workload, _, _ in codes)]),
            np.concatenate([none, *(platform for _, platform, _ in codes)]),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([none, *counts]))]),
            # Every vocabulary is sorted, so mapping one into another keeps rows sorted.
            np.concatenate([none, *(corunner for _, _, corunner in codes)]),
            _joined_covariates(parts),
        )

    def recode(
        self, workload_names: Sequence[str], platform_names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (workload (n,), platform (n,), corunner (m,)) int32 codes in other vocabularies.

        -1 where the other vocabulary does not know the name.
        """
        workload = (self.workload_names, workload_names)
        platform = (self.platform_names, platform_names)
        return (
            _recoded(self.workload, *workload),
            _recoded(self.platform, *platform),
            _recoded(self.corunner, *workload),
        )

    def codes_in(
        self, workload_names: Sequence[str], platform_names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what recode gives, where every name must be known. Raises UnknownName for the first that is
        not."""
        codes_of_all = self.recode(workload_names, platform_names)
        columns = (
            ("workload", self.workload, self.workload_names, workload_names),
            ("platform", self.platform, self.platform_names, platform_names),
            ("co-runner", self.corunner, self.workload_names, workload_names),
        )
        for codes, (kind, mine, names, known) in zip(codes_of_all, columns, strict=True):
            if len(codes) and codes.min() < 0:
                raise UnknownName(kind, names[mine[int(np.argmin(codes))]], tuple(known))
        return codes_of_all

    def row(self, index: int) -> tuple[str, str, tuple[str, ...]]:
        """Return (workload, platform, co-runners) of one row, by name."""
        index = range(len(self))[index]
        start, stop = self.corunner_offsets[index], self.corunner_offsets[index + 1]
        return (
            self.workload_names[self.workload[index]],
            self.platform_names[self.platform[index]],
            tuple(self.workload_names[code] for code in self.corunner[start:stop]),
        )

    def to_columns(self) -> dict[str, Any]:
        """Return the columns `workload`, `platform` and `corunners` that from_columns takes."""
        flat = [self.workload_names[code] for code in self.corunner.tolist()]
        offsets = self.corunner_offsets.tolist()
        return {
            "workload": [self.workload_names[code] for code in self.workload.tolist()],
            "platform": [self.platform_names[code] for code in self.platform.tolist()],
            "corunners": [flat[a:b] for a, b in pairwise(offsets)],
        }


def _joined_covariates(parts: Sequence[Colocations]) -> dict[str, np.ndarray]:
    """Concatenate the covariates of all parts in order; a name that a part lacks is unknown there."""
    out = {}
    for name in dict.fromkeys(name for part in parts for name in part.covariates):
        is_text = any(p.covariates[name].dtype.kind == "U" for p in parts if name in p.covariates)
        unknown, kind = ("", str) if is_text else (np.nan, np.float64)
        out[name] = np.concatenate(
            [p.covariates.get(name, np.full(len(p), unknown)).astype(kind) for p in parts]
        )
    return out


def sort_inside_rows(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sort codes (m,) within each row; codes are at least -1. Sorts only when it has to."""
    if len(codes) < 2:
        return codes
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if not np.any((codes[1:] < codes[:-1]) & (row[1:] == row[:-1])):
        return codes
    base = np.int64(codes.max()) + 2
    key = row * base + codes + 1
    key.sort()
    return (key % base - 1).astype(codes.dtype)


def _row_codes(
    key: np.ndarray, codes: np.ndarray, offsets: np.ndarray, base: np.int64
) -> np.ndarray:
    """Number the rows, (n,) int64: two rows have the same number if and only if they have the same key (n,)
    and the same codes in the same order. Row i has codes[offsets[i]:offsets[i + 1]], each under base - 1."""
    counts = np.diff(offsets)
    key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
    for place in range(int(counts.max(initial=0))):
        here = np.flatnonzero(counts > place)
        step = key * base  # code 0 says: nothing at this place
        step[here] += codes[offsets[here] + place].astype(np.int64) + 1
        key = np.unique(step, return_inverse=True)[1].reshape(-1).astype(np.int64)
    key.flags.writeable = False
    return key


def require_entries(values: Any, column: str) -> None:
    """Raise BadRows for one text, number or other value that stands where a column has to."""
    is_text = isinstance(values, (str, bytes))
    if is_text or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        what = "text" if is_text else "value"
        fix = "Give a list with one entry per row."
        raise BadRows(f"column {column!r} is one {what}: {shortened(repr(values), 40)}", fix=fix)


def _listed(values: Any, column: str) -> Sequence:
    """Return the values as a list or tuple, so that it can be walked twice and measured."""
    require_entries(values, column)
    if isinstance(values, (list, tuple)):
        return values
    for method in ("to_pylist", "tolist"):  # Arrow arrays; NumPy arrays and pandas series
        if hasattr(values, method):
            return getattr(values, method)()
    return list(values)


def _flattened(rows: Sequence) -> tuple[np.ndarray, list]:
    """Return (counts (n,), all co-runners in one list)."""
    if set(map(type, rows)) - {list, tuple}:
        bad = [
            (number, f"co-runners are {type(row).__name__}, not a list of names")
            for number, row in enumerate(rows)
            if isinstance(row, (str, bytes)) or not isinstance(row, Iterable)
        ]
        if bad:
            raise BadRows(
                f"{len(bad)} rows hold no list of co-runners, first row {bad[0][0]}: {bad[0][1]}",
                rows=bad[:_SHOWN],
                fix="Use [] for a workload that runs alone.",
            )
        rows = [tuple(row) for row in rows]
    return np.fromiter(map(len, rows), np.int64, len(rows)), list(chain.from_iterable(rows))


def _vocabulary(values: Sequence) -> set:
    try:
        return set(values)
    except TypeError:  # something that cannot be hashed is no name; _bad_names will say where
        return {None}


def _all_names(vocabulary: set) -> bool:
    return all(isinstance(name, str) and name for name in vocabulary)


def _bad_names(workload: Sequence, platform: Sequence, rows: Sequence) -> BadRows:
    bad, total = [], 0
    for number, (own, place, beside) in enumerate(zip(workload, platform, rows, strict=True)):
        for column, name in [
            ("workload", own),
            ("platform", place),
            *(("co-runner", name) for name in beside),
        ]:
            if not (isinstance(name, str) and name):
                total += 1
                if len(bad) < _SHOWN:
                    bad.append((number, f"{column} is {name!r}, not a name"))
    first = "; ".join(f"row {number}: {reason}" for number, reason in bad[:3])
    return BadRows(f"{total} names are empty or not text: {first}", rows=bad)


def _encode(values: Sequence, names: tuple[str, ...]) -> np.ndarray:
    codes = {name: code for code, name in enumerate(names)}
    return np.fromiter(map(codes.__getitem__, values), np.int32, len(values))


def _recoded(codes: np.ndarray, names: tuple[str, ...], others: Sequence[str]) -> np.ndarray:
    """codes (n,) int32 of `names` as codes of `others`, -1 where they lack the name."""
    if names is others:
        return codes
    index = places_of(tuple(others))
    if len(codes) < len(names):
        return np.fromiter((index.get(names[code], -1) for code in codes), np.int32, len(codes))
    return np.fromiter((index.get(name, -1) for name in names), np.int32, len(names))[codes]


def places_of(names: tuple[str, ...]) -> dict[str, int]:
    """Return where each name stands; kept, because the same names are looked up again and again."""
    if len(names) < _MANY_NAMES:
        return _places_of(names)
    # To compare a million names takes longer than any question: these are known by being the same object.
    entry = _MANY.get(id(names))
    if entry is None or entry[0] is not names:
        while len(_MANY) >= 8:
            _MANY.pop(next(iter(_MANY)), None)
        entry = _MANY[id(names)] = names, {name: code for code, name in enumerate(names)}
    return entry[1]


@lru_cache(maxsize=32)
def _places_of(names: tuple[str, ...]) -> dict[str, int]:
    return {name: code for code, name in enumerate(names)}


def _check_codes(colocations: Colocations) -> None:
    self, n = colocations, len(colocations.workload)
    offsets = self.corunner_offsets
    if len(self.platform) != n or len(offsets) != n + 1:
        raise BadRows("workload, platform and corunner_offsets do not fit together in length")
    if offsets[0] != 0 or offsets[-1] != len(self.corunner) or np.any(np.diff(offsets) < 0):
        raise BadRows("corunner_offsets must rise from 0 to the number of co-runners")
    for name, codes, vocabulary in [
        ("workload", self.workload, self.workload_names),
        ("platform", self.platform, self.platform_names),
        ("corunner", self.corunner, self.workload_names),
    ]:
        if len(codes) and (codes.min() < 0 or codes.max() >= len(vocabulary)):
            raise BadRows(f"a {name} code is outside its vocabulary of {len(vocabulary)} names")
