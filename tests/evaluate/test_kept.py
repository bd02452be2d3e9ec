"""Draws of a study that are kept in a file are not made again, and files are joined by their lines."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from studies.bounds.kept import add_options, drawn


def _told(options: Any, law: str, seed: int) -> list[Any]:
    with Path(f"{options.kept}.made").open("a") as file:
        file.write(f"{law}{seed}\n")
    return [law * seed, seed / 3, float("inf")]


def test_what_is_kept_is_not_drawn_again(tmp_path: Path) -> None:
    parser = ArgumentParser()
    add_options(parser)

    def of(file: str, seeds: range) -> dict[Any, Any]:
        options = parser.parse_args(["--workers", "2", "--kept", str(tmp_path / file)])
        return drawn(_told, ((law, seed) for seed in seeds for law in "ab"), options)

    first, second = of("one", range(2)), of("two", range(2, 3))
    joined = [(tmp_path / file).read_text() for file in ("one", "two")]
    (tmp_path / "all").write_text("".join(joined))
    every = of("all", range(4))
    assert list(every) == [(law, seed) for seed in range(4) for law in "ab"]
    assert every["b", 3] == ["bbb", 1.0, float("inf")]
    assert {key: every[key] for key in (*first, *second)} == {**first, **second}
    assert sorted((tmp_path / "all.made").read_text().split()) == ["a3", "b3"]
