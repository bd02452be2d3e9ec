"""The stack: members weighed by how well they say sets of workloads that they have not seen.

Weights come from greedy selection over four-fold cross-validation by set (`_weights`). Under a dozen sets, on
which little can be told apart, they are drawn towards a plain mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.rules import (
    NO_SLOWDOWN,
    Answer,
    Ground,
    LargerSets,
    Memory,
    RandomEffects,
    SimpleRule,
    SlowdownRows,
    Strength,
    fit_effects,
    fit_extrapolation,
    fit_memory,
    fit_simple_rules,
    folds_of,
    greedy_weights,
    is_noise,
    plainly_another_time,
    relative_error,
)
from jostle.slowdown._equation import Sizes
from jostle.slowdown.members._form import SlowdownForm, fit_form
from jostle.slowdown.members._process import (
    MOST_ROWS,
    Cells,
    Kernels,
    Process,
    Settings,
    fit_process,
    tuned,
)

FOLDS = 4
FEWEST_TO_WEIGH = 4  # sets
MANY_ROWS = 4_000  # past which one of the folds is enough
SETS_TO_TRUST = 12  # from which weights are wholly those of cross-validation
PENALTIES = (1e-4, 6e-4, 0.004, 0.025, 0.15)  # of the form, over the variance of the log slowdown
USUAL = (0.025, 0.15)  # of these, where there are too few sets to choose
USUAL_RULES = ("level", "effects")  # beside them
# Of the bilinear rest.
RESTS = {
    f"effects and rest {number}": strength
    for number, strength in enumerate((Strength(2, 0.03), Strength(2, 0.15), Strength(3, 0.5)))
}
FEWEST_STARTS = 3  # of a form, where more than one is asked for
LEAST_WEIGHT = 0.02
NONE = NO_SLOWDOWN
BY_EFFECTS = "process of effects"
PROCESSES = ("process", BY_EFFECTS)


Part = SimpleRule | SlowdownForm | Process
Member = tuple[Part, ...]  # whose values are added up


@dataclass(frozen=True)
class Recipe:
    """How members are made. sizes: of the form by the weight of what a workload has on one platform only.
    simple: whether others than the form take part. process: whether processes do. noise: variance of the log
    runtime of repeated runs alone, NaN where unknown. chance: of chance_of_shift."""

    ground: Ground
    sizes: dict[float, Sizes]
    penalties: tuple[float, ...]
    starts: int
    steps: int
    seed: int
    simple: bool = True
    process: bool = True
    noise: float = float("nan")
    chance: float = float("nan")

    def names(self, rows: SlowdownRows) -> list[str]:
        from scipy.sparse import issparse

        forms = [f"form {penalty:g} {here:g}" for penalty in self.penalties for here in self.sizes]
        if not self.simple:
            return forms
        simple = [NONE, "level", "effects", *RESTS, "boosting", "effects and boosting"]
        if self.process and len(rows) <= MOST_ROWS:
            simple += [BY_EFFECTS] if issparse(self.ground.design) else list(PROCESSES)
        return [*simple, *forms]


@dataclass(frozen=True)
class Shared:
    """What the folds share of a process: its settings, and kernels between all rows that do not depend on
    what a fold learns."""

    settings: Settings
    kernel: np.ndarray

    def take(self, keep: np.ndarray) -> Shared:
        return Shared(self.settings, self.kernel[np.ix_(keep, keep)])


def shared_processes(rows: SlowdownRows, recipe: Recipe) -> dict[str, Shared]:
    """{name: what the folds share}."""
    shared: dict[str, Shared] = {}
    wanted = set(PROCESSES) & set(recipe.names(rows))
    if not wanted:
        return shared
    effects, robust = fit_effects(rows, recipe.ground)
    cells = Cells.of(rows)
    for name in sorted(wanted):
        place = place_of(name, effects)
        settings = tuned(rows, recipe.ground, place, robust * rows.weight, recipe.seed)
        kernels = Kernels(cells, cells, recipe.ground, place)
        kernel = kernels.of_names(settings) if len(place) else kernels.weighed(settings)
        shared[name] = Shared(settings, kernel)
    return shared


def place_of(name: str, effects: RandomEffects) -> np.ndarray:
    """(cells, 2) over their spread, or (0, 2) for the process that looks at the design."""
    both = np.stack([effects.target, effects.corunner], 1)
    return both / np.maximum(both.std(0), 1e-9) if name == BY_EFFECTS else both[:0]


def fit_members(
    rows: SlowdownRows,
    recipe: Recipe,
    names: Sequence[str],
    shared: dict[str, Shared],
    starts: Callable[[str], int],
) -> dict[str, Member]:
    """The members called so, fitted on the rows. starts: of a form's name."""
    simple, effects, robust = fit_simple_rules(names, rows, recipe.ground, recipe.seed, RESTS)
    out: dict[str, Member] = {**simple}
    for name in names:
        if name in PROCESSES:
            mine, noise = shared[name], robust * rows.weight
            place = place_of(name, effects)
            out[name] = (fit_process(rows, place, noise, mine.settings, mine.kernel),)
        elif name.startswith("form"):
            penalty, here = (float(part) for part in name.split()[1:])
            sizes, steps = recipe.sizes[here], recipe.steps
            out[name] = (fit_form(rows, sizes, penalty, recipe.seed, starts(name), steps),)
    return out


@dataclass(frozen=True)
class Stack:
    """parts: with the weight of each; they are added up. more: what answers about more co-runners than any
    run had, None where the parts do. memory: of sets that were measured themselves, None for none."""

    parts: tuple[tuple[float, Part], ...]
    more: LargerSets | None = None
    memory: Memory | None = None

    def log_slowdown(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        if self.more is None:
            return self.known(rows, ground)
        past = rows.degree > self.more.most
        out = np.empty(len(rows))
        out[~past] = self.known(rows.take(~past), ground)
        if past.any():
            query, form = rows.take(past), self.form
            out[past] = self.more.log_slowdown(
                query,
                ground,
                lambda part: self.known(part, ground),
                None if form is None else lambda part: form.log_slowdown(part, ground),
            )
        return out

    def known(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        """(n,) of rows with no more co-runners than some run had."""
        total = np.zeros(len(rows))
        for weight, part in self.parts:
            total += weight * part.value(rows, ground)
        log = rows.as_log(total)
        return log if self.memory is None else log + self.memory.of(rows)

    @property
    def needs_design(self) -> bool:
        """Whether a member looks at the ground's design to answer."""
        processes = [part for _, part in self.parts if isinstance(part, Process)]
        return any(not process.settings.by_effects for process in processes)

    @property
    def form(self) -> SlowdownForm | None:
        """The form that has most weight."""
        forms = [(w, part) for w, part in self.parts if isinstance(part, SlowdownForm)]
        return max(forms, key=lambda each: each[0])[1] if forms else None


@dataclass(frozen=True)
class Weighed:
    """What cross-validation found. log_slowdown: (names, n) what each says of rows it has not seen,
    (names, 0) where nothing was tried; weight: (names,)."""

    names: list[str]
    log_slowdown: np.ndarray
    weight: np.ndarray


def fit_stack(
    rows: SlowdownRows, recipe: Recipe, tick: Callable[[], None]
) -> tuple[Stack, Weighed]:
    """The members with their weights, fitted on all rows. Rows must not be none."""
    sets = rows.sets()
    names = recipe.names(rows)
    shared = shared_processes(rows, recipe)
    if int(sets.max()) + 1 < FEWEST_TO_WEIGH or len(names) == 1:
        weighed = Weighed(names, np.zeros((len(names), 0)), _usual(names, recipe))
    else:
        weighed = _cross_validate(rows, sets, recipe, shared, tick)
    weights = [(n, w) for n, w in zip(names, weighed.weight.tolist(), strict=True) if w > 0]
    of_forms = sum(w for n, w in weights if n.startswith("form"))

    def starts(name: str) -> int:
        mine = dict(weights)[name] / of_forms
        return max(FEWEST_STARTS, round(mine * recipe.starts)) if recipe.starts > 1 else 1

    stack = _added(fit_members(rows, recipe, [n for n, _ in weights], shared, starts), weights)
    tick()
    if not recipe.simple or weights[0] == (NONE, 1.0):
        return stack, weighed

    def fewer(keep: np.ndarray) -> tuple[Answer, Answer | None]:
        mine = {name: each.take(keep) for name, each in shared.items()}
        names = [n for n, _ in weights]
        some = _added(fit_members(rows.take(keep), recipe, names, mine, lambda _: 1), weights)
        some = _remembering(some, rows.take(keep), ground, within[keep])
        form = some.form
        return (
            lambda part: some.known(part, ground),
            None if form is None else lambda part: form.log_slowdown(part, ground),
        )

    ground = recipe.ground
    out_of_fold = weighed.log_slowdown
    within = weighed.weight @ out_of_fold if out_of_fold.shape[1] else np.full(len(rows), np.nan)
    stack = _remembering(stack, rows, ground, within)
    more = fit_extrapolation(
        rows, ground, lambda part: stack.known(part, ground), within, fewer, recipe.noise
    )
    return replace(stack, more=more), weighed


def _remembering(stack: Stack, rows: SlowdownRows, ground: Ground, within: np.ndarray) -> Stack:
    """within: (n,) what was answered about rows not seen, NaN where none."""
    y = rows.log_slowdown
    memory = fit_memory(rows, y - stack.known(rows, ground), y - within)
    return replace(stack, memory=memory)


def _added(members: dict[str, Member], kept: list[tuple[str, float]]) -> Stack:
    """The weighed sum; a part of several members has the weight of all."""
    parts: dict[int, tuple[float, Part]] = {}
    for name, weight in kept:
        for part in members[name]:
            before = parts.get(id(part), (0.0, part))[0]
            parts[id(part)] = (before + weight, part)
    return Stack(tuple(parts.values()))


def _cross_validate(
    rows: SlowdownRows,
    sets: np.ndarray,
    recipe: Recipe,
    shared: dict[str, Shared],
    tick: Callable[[], None],
) -> Weighed:
    names = recipe.names(rows)
    number = int(sets.max()) + 1
    fold = folds_of(sets, FOLDS, np.random.default_rng(recipe.seed))
    answers = np.full((len(names), len(rows)), np.nan)
    for part in range(FOLDS if len(rows) <= MANY_ROWS else 1):
        train, held = fold != part, rows.take(fold == part)
        mine = {name: each.take(train) for name, each in shared.items()}
        members = fit_members(rows.take(train), recipe, names, mine, lambda _: 1)
        for at, name in enumerate(names):
            value = sum((p.value(held, recipe.ground) for p in members[name]), np.zeros(len(held)))
            answers[at, fold == part] = held.as_log(value)
        tick()
    tried = np.isfinite(answers[0])
    y, tried_answers = rows.log_slowdown[tried], answers[:, tried]
    if not recipe.simple:  # one form, so that what holds for the form holds for the answer
        error = relative_error(tried_answers - y).mean(1)
        return Weighed(names, answers, np.eye(len(names))[int(np.argmin(error))])
    weight, unseen = greedy_weights(tried_answers, y, sets[tried], recipe.seed)
    noise = is_noise(recipe.chance, np.abs(np.expm1(-y)) - unseen, sets[tried])
    if noise and number < SETS_TO_TRUST and np.isnan(recipe.chance):  # too few for that to tell
        noise = not plainly_another_time(y, rows.target[tried])
    if noise:
        return Weighed(names, answers, np.array([float(name == NONE) for name in names]))
    trust = min(1.0, number / SETS_TO_TRUST)
    weight = trust * weight + (1 - trust) * _usual(names, recipe)
    weight[weight < LEAST_WEIGHT] = 0.0
    return Weighed(names, answers, weight / weight.sum())


def _usual(names: list[str], recipe: Recipe) -> np.ndarray:
    """Weights where nothing could be tried: half to the usual forms, half to plain rules; without these,
    all to the first of the forms."""
    usual = set(USUAL) & set(recipe.penalties) or set(recipe.penalties)
    mine = np.array([n.startswith("form") and float(n.split()[1]) in usual for n in names], float)
    rules = np.array([name in USUAL_RULES for name in names], float)
    mine = mine / mine.sum() + rules / max(rules.sum(), 1.0)
    if not recipe.simple:
        mine = np.eye(len(names))[int(np.argmax(mine))]
    return mine / mine.sum()
