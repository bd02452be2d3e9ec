"""`python -m studies placement`: policies side by side on measured co-locations that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from jostle._base.option_fields import Flag, Limits, Positional
from jostle._base.progress import Progress, no_progress, share_of
from jostle._base.report import Report, Table, percent
from studies.fields import FirstSeed, Seeds, listed

if TYPE_CHECKING:
    from jostle.data import Runs


AS_GOOD = 0.02  # of the clairvoyant's saving, by which a rule may be behind and still do as well


@dataclass(frozen=True)
class PlacementStudy:
    """Who may share a platform: limits violated against platforms saved, by policy.

    Sets of co-runners are held out whole. Every workload of them is a request with a limit drawn from the
    ratios; a policy accepts sets, and those that save most platforms are placed, each request once.
    """

    dataset: Annotated[
        Path | None, "The dataset: a folder of runs.  [default: the sample]", Positional()
    ] = None
    method: Annotated[str, "The method, by the name that jostle fit knows."] = "factorization"
    settings: Annotated[
        tuple[str, ...], "A setting of the method, NAME=VALUE; repeat for more.", Flag("--set")
    ] = ()
    held_out: Annotated[float, "Share of the sets to hold out.", Limits(0.01, 0.9)] = 0.3
    limits: Annotated[str, "Limits over the time alone, separated by commas."] = "1.1,1.25,1.5,2"
    among: Annotated[
        float, "Of the chosen, the share that may be late, for policies that aim at one."
    ] = 0.05
    repeats: Annotated[int, "Draws of limits for each fit.", Limits(1)] = 5
    seeds: Seeds = 5
    seed: FirstSeed = 0

    name: ClassVar[str] = "placement"

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, NotEnoughRuns, and what reading and fitting raise."""
        import numpy as np

        from studies.contract import document
        from studies.placement.simulate import Draw, Tally, simulate_policies, summed

        runs, data = self._runs()
        ratios = np.array([self._ratio(text) for text in listed(self.limits) or ()])
        draw = Draw(self.held_out, ratios, self.among, self.repeats)
        every: list[Tally] = []
        for number in range(self.seeds):
            every += simulate_policies(
                runs,
                self._method(),
                draw,
                self.seed + number,
                share_of(progress, number, self.seeds),
            )
        rows = summed(every)
        tables: list[Any] = [policy_table(rows), *_plainly(rows)]
        notes = sorted({f"{one.policy}, seed {one.seed}: {one.note}" for one in every if one.note})
        metrics = {
            f"{row['policy'].replace(' ', '_')}_{name}": row[name]
            for row in rows
            for name in ("violated_ratio", "saved_of_clairvoyant_ratio", "accepted_late_ratio")
        }
        results = document(
            self,
            data,
            self.seed,
            limits=ratios.tolist(),
            rows=rows,
            metrics=metrics,
        )
        return Report(results, tables, notes=notes)

    def _runs(self) -> tuple[Runs, dict[str, Any]]:
        from jostle.data import Dataset, read_runs, sample

        if self.dataset is None:
            return sample().ok(), {"dataset": "sample"}
        version = Dataset(self.dataset).version()
        return read_runs(self.dataset).ok(), {"dataset": str(self.dataset), "version": version}

    def _method(self) -> Any:
        from jostle._base.option_fields import settings_of_texts
        from jostle.learn import method_named

        return settings_of_texts(method_named(self.method), self.settings)

    @staticmethod
    def _ratio(text: str) -> float:
        from jostle.errors import UsageError

        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 1 <= value < float("inf"):
            raise UsageError(f"the limit {text!r} is not a ratio of at least 1", fix="Such as 1.5.")
        return value


def _plainly(rows: list[dict[str, Any]]) -> list[str]:
    """Which rule without bounds does as well as those with bounds, if any."""
    aim = rows[0]["aim_ratio"]
    bounded = [row for row in rows if row["policy"].startswith(("bound", "chosen"))]
    kept = [row["saved_of_clairvoyant_ratio"] for row in bounded if row["violated_ratio"] <= aim]
    most = max(kept, default=0.0)
    best = [
        f"{row['policy']} ({percent(row['saved_of_clairvoyant_ratio'], 0)} saved, "
        f"{percent(row['violated_ratio'])} violated)"
        for row in rows
        if not row["policy"].startswith(("bound", "chosen", "clairvoyant", "no sharing"))
        and row["violated_ratio"] <= aim
        and row["saved_of_clairvoyant_ratio"] >= most - AS_GOOD
        and row["placed_sets"] > 0
    ]
    if best:
        return [f"Without bounds as good here, though nothing promised it: {', '.join(best)}."]
    text = f"No rule without bounds saves as much with at most {percent(aim)} violated here."
    return [text]


def policy_table(rows: list[dict[str, Any]]) -> Table:
    """Show what each policy placed at once."""
    lines = [
        [
            row["policy"],
            f"{row['placed_sets']:.1f}",
            percent(row["violated_ratio"]),
            percent(row["saved_of_clairvoyant_ratio"], 0),
            percent(row["accepted_late_ratio"], 2),
            percent(row["accepted_late_error_ratio"], 2),
            f"{row['decisions_per_second']:.3g}",
        ]
        for row in rows
    ]
    heads = [
        "policy",
        "sets placed",
        "violated of them",
        "saved of clairvoyant's",
        "accepted and late of asked",
        "error",
        "decisions/s",
    ]
    return Table(heads, lines)
