"""`python -m studies one_model`: the default of `jostle fit DATA` beside all methods and simple rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from jostle._base.option_fields import Flag
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report
from studies.fields import FirstSeed, Seeds, listed

if TYPE_CHECKING:
    from studies.one_model.measure import FitCell


@dataclass(frozen=True)
class OneModelStudy:
    """Whether anybody has to choose: the default, each single method that the data allow and simple rules.

    Sets of workloads are left out on all platforms at once (everywhere), on one at a time (per-platform),
    because a fifth of the names was only measured alone (new-names), or because they are larger than any that
    is known (pairs-to-more, triples-to-more, five-to-more). Every method learns from the same rows, through
    the calls that a user makes. A row without an answer counts as an error of 100%.
    """

    data: Annotated[
        str | None,
        "Only these data sets, separated by commas; `shipped`, `public` and `made` for all such.  "
        "[default: all]",
    ] = None
    shares: Annotated[str, "Shares of the sets that are known, separated by commas."] = (
        "0.1,0.2,0.5"
    )
    ways: Annotated[str, "Ways to leave sets out, separated by commas."] = (
        "everywhere,per-platform,new-names,pairs-to-more,triples-to-more,five-to-more"
    )
    methods: Annotated[
        str | None,
        "Only these, separated by commas: default, names of methods and of rules.  [default: all]",
    ] = None
    seeds: Seeds = 1
    seed: FirstSeed = 0
    raw: Annotated[
        Path | None,
        "A file of JSON lines to which every figure is added at once; what stands there is not measured "
        "again.",
        Flag("--raw"),
    ] = None
    show: Annotated[bool, "Fit nothing: only show what the raw file holds."] = False

    name: ClassVar[str] = "one_model"

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, UnknownName, UnreadableFile, and what reading and fitting raise."""
        from studies.contract import document
        from studies.one_model import tables

        records = list(self._records(progress))
        cells = tables.by_cell(records)
        shown = [tables.error_table(cells), tables.cell_table(cells), tables.summary_table(cells)]
        content = document(
            self,
            {"names": self._data_names()},
            self.seed,
            settings={"shares": self.shares, "ways": self.ways, "seeds": self.seeds},
            cells=records,
        )
        reasons = dict.fromkeys(
            f"{r['data']}, {r['method']}: {r['left_out']}" for r in records if "left_out" in r
        )
        return Report(content, shown, notes=[f"left out: {reason}" for reason in reasons])

    def _records(self, progress: Progress) -> Iterator[dict[str, Any]]:
        """What is measured, and what the raw file holds of it, in the order of the cells."""
        from studies.one_model.campaigns import read_campaign
        from studies.one_model.measure import Examined

        known = read_raw(self.raw)
        cells, methods = list(self._cells()), self._methods()
        read: tuple[Any, Any] = (None, None)
        for number, cell in enumerate(cells):
            progress(number, len(cells), float("nan"))
            missing = not self.show and any(key_of(cell, m) not in known for m in methods)
            draw = None
            if missing:
                if read[0] != (cell.data, cell.seed):
                    read = (cell.data, cell.seed), read_campaign(cell.data, cell.seed)
                draw = Examined.of(cell, read[1])
            for method in methods:
                key = key_of(cell, method)
                if key not in known and draw is not None:
                    known[key] = _measured(draw, method, known)
                    add_raw(self.raw, known[key])
                if key in known:
                    yield known[key]
        progress(len(cells), len(cells), float("nan"))

    def _cells(self) -> Iterator[FitCell]:
        from studies.one_model.measure import FitCell
        from studies.one_model.splits import LARGER, NEW, NEW_PLATFORM, USUAL_SHARE, SetsLeftOut

        usual = (NEW, NEW_PLATFORM, *LARGER)
        shares = [_share(text) for text in listed(self.shares) or []]
        for seed in range(self.seed, self.seed + self.seeds):
            for name in self._data_names():
                for way in listed(self.ways) or []:
                    for share in [USUAL_SHARE] if way in usual else shares:
                        yield FitCell(name, SetsLeftOut(way, share), seed)

    def _data_names(self) -> list[str]:
        from jostle.errors import UnknownName
        from studies.one_model.campaigns import KINDS, campaign_names

        names: list[str] = []
        for name in listed(self.data) or list(KINDS):
            if name not in KINDS and name not in campaign_names():
                raise UnknownName("data set", name, [*KINDS, *campaign_names()])
            names += KINDS.get(name, [name])
        return list(dict.fromkeys(names))

    def _methods(self) -> list[str]:
        from jostle.errors import UnknownName
        from studies.one_model.measure import DEFAULT, SINGLE
        from studies.one_model.rules import RULES

        every = [DEFAULT, *SINGLE, *RULES]
        chosen = listed(self.methods) or every
        for name in chosen:
            if name not in every:
                raise UnknownName("method", name, every)
        return chosen


def key_of(cell: FitCell, method: str) -> tuple[Any, ...]:
    return (cell.data, cell.way.name, cell.way.share, cell.seed, method)


def _share(text: str) -> float:
    from jostle.errors import UsageError

    try:
        return float(text)
    except ValueError:
        raise UsageError(f"the share {text!r} is not a number", fix="Such as 0.1,0.5.") from None


def _measured(draw: Any, method: str, known: dict[tuple[Any, ...], Any]) -> dict[str, Any]:
    """A record of one method in one cell; of one that cannot learn from such data, why not. A method that
    crashes is no reason to lose the others."""
    from jostle.errors import JostleError
    from studies.one_model.measure import DEFAULT

    cell = draw.cell
    names = dict(zip(("data", "way", "share", "seed", "method"), key_of(cell, method), strict=True))
    default = known.get(key_of(cell, DEFAULT), {})
    if default.get("fitted") == method:  # the default is this method: the same call twice
        return default | names
    try:
        return names | draw.measure(method)
    except JostleError as error:
        return names | {"left_out": str(error)}
    except Exception as error:
        return names | {"left_out": f"crashed with {type(error).__name__}: {error}"}


def read_raw(path: Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What the file holds, by its keys; nothing where there is none. A last line that a kill cut off is left
    out. Raises UnreadableFile."""
    from jostle.errors import UnreadableFile

    if path is None or not path.exists():
        return {}
    lines = path.read_text("utf-8").splitlines(keepends=True)
    records: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        try:
            r = json.loads(line)
            records[r["data"], r["way"], r["share"], r["seed"], r["method"]] = r
        except (ValueError, KeyError, TypeError):
            if number == len(lines) and not line.endswith("\n"):
                break
            raise UnreadableFile(
                f"line {number} is no figure of this study", where=str(path), fix="Remove the line."
            ) from None
    return records


def add_raw(path: Path | None, record: dict[str, Any]) -> None:
    """Add a line, after one that a kill cut off has been taken away."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)
        file.write(json.dumps(record).encode() + b"\n")


__all__: Sequence[str] = ("OneModelStudy", "add_raw", "key_of", "read_raw")
