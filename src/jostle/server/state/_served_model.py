"""The model that answers, and how a new one takes its place: one reference is exchanged, while serving."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from jostle._base.files import signature_of
from jostle._base.tensors import checksum_of as checksum
from jostle.errors import JostleError, UnreadableFile
from jostle.models import Model, load
from jostle.operations import KnownNames

_ATTEMPTS = 20
MODEL = "model.json"
TENSORS = ".safetensors"
MOST_LATELY = 20_000


class Lately(OrderedDict[Any, Any]):
    """Answers by question, the oldest forgotten past so many; used by several threads."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self._lock = most, Lock()

    def put(self, key: Any, answer: Any) -> None:
        """Keep an answer, which nobody changes afterwards."""
        with self._lock:
            if key not in self and len(self) >= self.most:
                self.popitem(last=False)
            self[key] = answer


@dataclass(frozen=True)
class Served:
    """A model with the version of its files. An answer takes everything from one of these, never from two.

    model: what answers, following what has drifted. checksum: of its files; version: its beginning.
    data_version: of what it was fitted to. bounds_lately: answers by question, which schedulers ask again and
    again. moved_lately: those that change with every run. drifts: how many names were found to drift since it
    serves. signs: how often one was told or seemed to be there. changed: how often its answers have changed
    since.
    """

    model: Model
    checksum: str
    data_version: str
    known: KnownNames = field(repr=False)
    bounds_lately: Lately = field(default_factory=lambda: Lately(MOST_LATELY), repr=False)
    moved_lately: Lately = field(default_factory=lambda: Lately(MOST_LATELY), repr=False)
    drifts: int = 0
    signs: int = 0
    changed: int = 0

    @classmethod
    def of(cls, model: Model, checksum: str) -> Served:
        data_version = str(model.metadata.get("data_version") or "unknown")
        return cls(model, checksum, data_version, KnownNames.of(model.predictor))

    @property
    def version(self) -> str:
        return self.checksum[:16]

    def following(self, model: Model, drifts: int, signs: int) -> Served:
        """Return the model with answers moved by what has drifted up to now."""
        # What is asked of names that do not drift stays as it was until another one does.
        lately = self.bounds_lately if signs == self.signs else Lately(MOST_LATELY)
        changed = self.changed + 1
        now = {"bounds_lately": lately, "moved_lately": Lately(MOST_LATELY), "drifts": drifts,
               "signs": signs, "changed": changed}  # fmt: skip
        if drifts:
            model.label = {**self.model.label, "drifts": drifts}
        return replace(self, model=model, **now)

    @property
    def key(self) -> tuple[str, int]:
        """The same for the same answers."""
        return self.version, self.changed

    @cached_property
    def pools(self) -> list[dict[str, Any]]:
        """The calibration pools that bounds rest on, which take a while to find."""
        return [vars(one) for one in self.model.calibration.summary()]

    @property
    def is_calibrated(self) -> bool:
        return len(self.model.calibration.runs) > 0

    @property
    def label(self) -> dict[str, Any]:
        """The part of every answer that names the model."""
        return self.model.label


class ModelFolder:
    """A folder, or a link to one, where a model is and newer ones will come.

    served: the newest that could be read. trouble: why what lies there now is not served, if so. changes,
    failures: how often a new model was taken, and could not be.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.served = path, None
        self.trouble: str | None = None
        self.changes = self.failures = 0
        self._seen: Any = ()  # nothing was looked at
        self._tensors: frozenset[Any] = frozenset()
        self._lock, self._looking = Lock(), Lock()

    served: Served | None

    def look(self) -> bool:
        """Take what lies there if it is new; says whether it was. Never raises for a model that is bad.

        Whoever looks while another does waits, and finds what the other took.
        """
        with self._looking:
            return self._look()

    def _look(self) -> bool:
        signature, tensors = signature_of(self.path / MODEL), _tensors_in(self.path)
        # What could not be read is read again as well once another of its files has come.
        if signature == self._seen and (self.trouble is None or tensors == self._tensors):
            return False
        self._tensors = tensors
        try:
            served = read_served(self.path)
        except JostleError as error:
            self.trouble, self._seen = str(error), signature
            self.failures += 1
            return False
        self.trouble, self._seen = None, signature
        with self._lock:
            if self.served is not None and self.served.version == served.version:
                return False
            self.changes += self.served is not None
            self.served = served  # the one moment at which the new model takes over
        return True

    @property
    def is_empty(self) -> bool:
        """True if there is no model, not even one that cannot be read."""
        return signature_of(self.path / MODEL) is None

    def follow(self, version: str, model: Model, drifts: int, signs: int) -> None:
        """Let the model of this version answer as `model` does from now on; do nothing if another version
        answers."""
        with self._lock:
            if self.served is not None and self.served.version == version:
                self.served = self.served.following(model, drifts, signs)


def _tensors_in(path: Path) -> frozenset[Any]:
    """Return the names and signatures of the files of tensors in a folder, which differ once a file is
    changed."""
    try:
        files = [one for one in path.iterdir() if one.suffix == TENSORS]
    except OSError:
        return frozenset()
    return frozenset((one.name, signature_of(one)) for one in files)


def read_served(path: Path) -> Served:
    """Read a model with its own version: the files are the same before and after reading.

    Raises what jostle.load raises.
    """
    for _ in range(_ATTEMPTS):
        before = checksum_of(path)
        if not before:
            raise UnreadableFile("no model here", where=str(path))
        model = load(path)
        if before == checksum_of(path):
            served = Served.of(model, before)
            model.label = {**model.label, "version": served.version}
            return served
    raise UnreadableFile("the model changes faster than it can be read", where=str(path))


def checksum_of(path: Path) -> str:
    """Read the checksum of the model in a folder; empty if there is none. Raises UnreadableFile."""
    return checksum(path / MODEL)
