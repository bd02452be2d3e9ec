"""A disk that forgets at a power cut what it was not told to keep.

Calls that change folders or have things on the disk are recorded while they are really made. Afterwards
the folder can be made as it may be found after a cut at any moment: what was fsynced in time is there; of
what was not, each change of a folder happened or did not, on its own, and a file is cut anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Event:
    """what: made, entered, removed (in a folder), content, synced or acknowledged. path: of what. file:
    its number, the same whatever it is called. content: of a file, or what was acknowledged."""

    what: str
    path: Path = Path()
    file: int = -1
    content: Any = None


class Recorder:
    """Records what happens below a folder until the test ends."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.events = root, []
        self._numbers: dict[int, int] = {}
        self._next = 0
        real = {name: getattr(os, name) for name in ("link", "replace", "unlink", "mkdir", "open")}
        self._sync: Callable[[int], None] = os.fsync

        def link(source: Any, target: Any) -> None:
            real["link"](source, target)
            self._add("entered", target, self._number(os.stat(target)))

        def replace(source: Any, target: Any) -> None:
            self._forget(target)
            real["replace"](source, target)
            self._add("entered", target, self._number(os.stat(target)))

        def unlink(path: Any, **more: Any) -> None:
            self._forget(path)
            real["unlink"](path, **more)
            self._add("removed", path)

        def mkdir(path: Any, *more: Any) -> None:
            real["mkdir"](path, *more)
            self._add("made", path)

        def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
            is_new = bool(flags & os.O_CREAT) and not os.path.exists(path)
            descriptor = real["open"](path, flags, *more, **named)
            if is_new:
                self._add("entered", path, self._number(os.fstat(descriptor)))
            return descriptor

        for name, call in (
            *(("link", link), ("replace", replace), ("rename", replace), ("unlink", unlink)),
            *(("mkdir", mkdir), ("open", opened), ("fsync", self._fsync)),
        ):
            patch.setattr(os, name, call)

    def acknowledge(self, value: Any) -> None:
        """A writer was told that this is kept."""
        self.events.append(Event("acknowledged", content=value))

    def _fsync(self, descriptor: int) -> None:
        self._sync(descriptor)
        found, path = os.fstat(descriptor), Path(f"/proc/self/fd/{descriptor}")
        if stat.S_ISDIR(found.st_mode):
            self._add("synced", os.readlink(path))
        else:
            content = path.read_bytes()
            self.events.append(Event("content", file=self._number(found), content=content))

    def _add(self, what: str, path: Any, file: int = -1) -> None:
        content = Path(path).read_bytes() if what == "entered" else None
        self.events.append(Event(what, Path(os.path.abspath(path)), file, content))

    def _number(self, found: os.stat_result) -> int:
        if found.st_ino not in self._numbers:
            self._numbers[found.st_ino] = self._next
            self._next += 1
        return self._numbers[found.st_ino]

    def _forget(self, path: Any) -> None:
        """The system gives the number of a file that is gone to another."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
        if found.st_nlink == 1:
            self._numbers.pop(found.st_ino, None)

    def after_cuts(
        self, place: Path, draws: int, moments: int | None = None, seed: int = 0
    ) -> Iterator[tuple[Path, list[Any]]]:
        """(the root as it may be found, what had been acknowledged) for cuts at every moment, or at so many
        of the last."""
        random = np.random.default_rng(seed)
        every = range(len(self.events) + 1)
        for moment in every if moments is None else every[-moments:]:
            for draw in range(draws):
                # Nothing that was not asked for, all of it, and any part of it.
                chance = {0: 0.0, 1: 1.0}.get(draw, 0.5)
                folder = place / f"{moment}-{draw}"
                folder.mkdir()
                self._make(folder, self.events[:moment], chance, random)
                told = [e.content for e in self.events[:moment] if e.what == "acknowledged"]
                yield folder, told

    def _make(
        self, folder: Path, events: list[Event], chance: float, random: np.random.Generator
    ) -> None:
        synced = {e.path: at for at, e in enumerate(events) if e.what == "synced"}
        contents = {e.file: e.content for e in events if e.what == "content"}
        folders, entries = {self.root}, {}
        for at, event in enumerate(events):
            if event.what not in ("made", "entered", "removed"):
                continue
            if synced.get(event.path.parent, -1) < at and random.random() >= chance:
                continue
            if event.what == "made":
                folders.add(event.path)
            elif event.what == "entered":
                entries[event.path] = event
            else:
                entries.pop(event.path, None)
        for path in sorted(folders):
            if {*path.parents} & folders >= {p for p in path.parents if self.root in p.parents}:
                (folder / path.relative_to(self.root)).mkdir(exist_ok=True)
        for path, event in entries.items():
            if (
                path.is_relative_to(self.root)
                and (target := folder / path.relative_to(self.root)).parent.is_dir()
            ):
                content = contents.get(event.file)
                if content is None:
                    content = event.content[: random.integers(0, len(event.content) + 1)]
                target.write_bytes(content)
