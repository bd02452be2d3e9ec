"""A paper's tables and figures on one HTML page of its own, with nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from jostle._base import files as _files
from jostle._base.report import Table

_STYLE = (
    "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}"
    "td,th{padding:.2rem .6rem;border-bottom:1px solid #8885;text-align:right}"
    "td:first-child,th:first-child{text-align:left}img{max-width:100%}</style>"
)


def write_page(
    folder: Path, title: str, intro: str, captions: Mapping[str, str], tables: Sequence[Table]
) -> Path:
    """folder/index.html, written whole: every picture of folder/figures that has a caption, {name: caption},
    for light and for dark pages, then the tables under their titles."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>",
        f"<meta name=viewport content='width=device-width'>{_STYLE}",
        f"<h1>{escape(title)}</h1><p>{escape(intro)}</p>",
    ]
    for name, caption in captions.items():
        if (folder / "figures" / f"{name}.svg").exists():
            picture = (
                f"<picture><source srcset='figures/{name}-dark.svg' "
                f"media='(prefers-color-scheme: dark)'><img src='figures/{name}.svg' "
                f"alt='{escape(caption)}'></picture>"
            )
            parts.append(f"<h2>{escape(caption)}</h2>{picture}")
    for table in tables:
        parts.append(f"<h2>{escape(table.title)}</h2><table>")
        parts.append("".join(f"<th>{escape(column)}" for column in table.columns))
        parts += ["<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in table.rows]
        parts.append("</table>")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    _files.write_whole(path, "\n".join(parts).encode())
    return path
