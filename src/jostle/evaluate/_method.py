"""`jostle evaluate method`: one fit of any method on one split of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from jostle._options import Flag, Option, options_of, settings_from
from jostle._report import Report, Table, percent
from jostle.errors import UsageError
from jostle.evaluate._fields import DatasetFolder
from jostle.methods import Method, method_named
from jostle.progress import Progress, no_progress

LEVELS = (90, 95, 99)


@dataclass(frozen=True)
class MethodStudy:
    """Error, coverage and margin of any method on runs it has not seen."""

    dataset: DatasetFolder
    method: Annotated[str, "The method, by the name that jostle fit knows."] = "factorization"
    settings: Annotated[
        tuple[str, ...], "A setting of the method, NAME=VALUE; repeat for more.", Flag("--set")
    ] = ()
    observed: Annotated[float, "Share of the runs to learn from, drawn with the seed."] = 0.5
    by: Annotated[
        Literal["window", "row", "together"],
        "What is drawn whole; together: sets of workloads.",
    ] = "window"
    seed: Annotated[int, "Of the split and the training."] = 0

    name: ClassVar[str] = "method"

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError for an unknown method or setting, and what reading and fitting raise."""
        from jostle.evaluate._contract import document
        from jostle.evaluate._splits import evaluate_method, observed_split
        from jostle.runs import Dataset, read_runs

        method = made(method_named(self.method), self.settings)
        runs = read_runs(self.dataset)
        split = observed_split(runs, self.observed, self.seed, self.by)
        m, _ = evaluate_method(runs, method, split, seed=self.seed, progress=progress)
        data = {
            "dataset": str(self.dataset),
            "version": Dataset(self.dataset).version(),
            "observed": self.observed,
            "split_by": self.by,
        }
        return Report(
            document(
                self, data, self.seed, method=self.method, settings=dict(vars(method)), metrics=m
            ),
            [
                measures_table(m),
                f"{self.method}: {m['test_runs']:.0f} test runs, fitted and calibrated in "
                f"{m['train_seconds']:.1f} s",
            ],
        )


def measures_table(m: dict[str, float]) -> Table:
    """Errors, coverage and margins of `metrics_of`, a row a group of runs."""
    bounds = [(what, level) for level in LEVELS for what in ("coverage", "margin")]
    rows = []
    for group in [name[5:-6] for name in m if name.startswith("mape_")]:
        errors = [percent(m[f"{what}_{group}_ratio"], 2) for what in ("mape", "median_error")]
        cells = [
            percent(m[f"{what}_{level}_{group}_ratio"], 2 if what == "coverage" else 1)
            for what, level in bounds
        ]
        rows.append([group, *errors, *cells])
    columns = ["", "MAPE", "median", *(f"{what} {level}" for what, level in bounds)]
    return Table(columns, rows, range(1, len(columns)))


def made(kind: type[Method[Any]], settings: tuple[str, ...]) -> Method[Any]:
    """A method with settings given as NAME=VALUE. Raises UsageError for what it does not have."""
    known = {option.name: option for option in options_of(kind)}
    values: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"the setting {text!r} is not NAME=VALUE")
        values[name] = _read(known[name], value.strip()) if name in known else value
    return settings_from(kind, values)


def _read(option: Option, text: str) -> Any:
    """The value that a text stands for; several are parted by commas."""
    if option.is_optional and text.lower() == "none":
        return None
    if option.is_many:
        return tuple(_one(option, part.strip()) for part in text.split(",") if part.strip())
    try:
        return _one(option, text)
    except ValueError:
        raise UsageError(
            f"{option.name} cannot be {text!r}", fix=f"It is a {option.kind.__name__}."
        ) from None


def _one(option: Option, text: str) -> Any:
    if option.kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return option.kind(text)
