"""Adding a file to a folder so that readers see all of it or nothing, and no writer waits for another.

A file is written under a temporary name with a leading dot, which readers pass over, and fsynced.
Only then is it linked to its final name, `<serial>-<hash of the content>.parquet`, and the folder is
fsynced. Linking fails rather than overwrites, and two writers who take the same serial number still
have two names, unless their content is the same. A killed writer leaves a temporary file at most: each
writer holds a lock on its own, which the system drops with it, and the next one sweeps what nobody holds.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase, BufferedRandom, BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jostle._base.untrusted import parquet_file, require_regular
from jostle.errors import NotPermitted, UnreadableFile

_NAME = re.compile(r"(\d{8,})-([0-9a-f]{16})\.parquet")
_RESTORE = "Restore it from a copy, or move it out of the dataset."
_THREADS_FROM = 1 << 23  # bytes
_WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True)
class Staged:
    """A complete file under its temporary name, and the hash of its content."""

    temporary: Path
    content: str

    def publish(self) -> Path | None:
        """Give it its final name; None when the folder already holds the same content.

        Either way it is on the disk afterwards. Raises NotPermitted.
        """
        folder = self.temporary.parent
        with errors_explained(folder):
            names = [match for p in folder.iterdir() if (match := _NAME.fullmatch(p.name))]
            final = None
            if all(match[2] != self.content for match in names):
                serial = max((int(match[1]) for match in names), default=0) + 1
                final = self._link(folder / f"{serial:08d}-{self.content}.parquet")
            # Also for a file of another writer, who may be killed before doing it.
            sync_folder(folder)
            return final

    def _link(self, final: Path) -> Path | None:
        try:
            os.link(self.temporary, final)
        except FileExistsError:  # another writer of the same content was faster
            return None
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
            # No hard links here. A rename could overwrite, but only the same content.
            os.rename(self.temporary, final)
        return final

    def is_there(self) -> bool:
        """Check whether the folder already holds a file of the same content."""
        return any(self.temporary.parent.glob(f"*-{self.content}.parquet"))


@contextmanager
def staged(table: pa.Table, folder: Path) -> Iterator[Staged]:
    """Write the table under a temporary name in the folder; that name is gone afterwards.

    Raises NotPermitted when the disk is full or does not allow it.
    """
    with errors_explained(folder):
        make_folder(folder)
        sweep(folder)
    with ExitStack() as stack:
        with errors_explained(folder):
            temporary, file = stack.enter_context(temporary_file(folder))
            pq.write_table(table, file, compression="zstd")
            sync(file)
            file.seek(0)
            ready = Staged(temporary, _content(file))
        yield ready


def write_whole(path: Path, content: bytes) -> None:
    """Write all of it or nothing, and on the disk: a temporary name, fsync, rename, fsync of the folder.
    Raises OSError."""
    with temporary_file(path.parent) as (temporary, file):
        file.write(content)
        sync(file)
        os.replace(temporary, path)
    sync_folder(path.parent)


@contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[Path, BufferedRandom]]:
    """Open a new file in the folder to write and read, under a name that readers pass over: (name, file). No
    other process removes it meanwhile, and nothing is left under the name afterwards."""
    while True:
        temporary = folder / f".{os.getpid()}-{os.urandom(6).hex()}.tmp"
        file = open(temporary, "x+b")  # noqa: SIM115 (closed below, or handed out)
        with suppress(OSError):  # where there are no locks, nobody sweeps
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            break
        file.close()  # swept before it was locked
    try:
        yield temporary, file
    finally:
        with suppress(OSError):
            temporary.unlink()
        with suppress(OSError):  # what was to be kept is synced already
            file.close()


def sweep(folder: Path) -> None:
    """Remove the temporary files of killed writers: nobody holds the lock of those any more."""
    for path in leftovers(folder):
        with suppress(OSError), open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def sync(file: BufferedIOBase) -> None:
    """Have all that was written to a file on the disk."""
    file.flush()
    os.fsync(file.fileno())


def leftovers(folder: Path) -> list[Path]:
    """Return temporary files of killed or still writing writers."""
    return sorted(folder.glob(".*.tmp"))


def content_of(path: Path) -> str:
    """Return the hash of a file's content: from its name, or computed if its name has none."""
    match = _NAME.fullmatch(path.name)
    return match[2] if match else _content(BytesIO(_bytes(path)))


def parquet_files(folder: Path) -> list[Path]:
    """List the folder's complete files in the order in which they were written; none if there is no folder.

    Raises UnreadableFile if the folder cannot be looked into: unreadable is not empty.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        why = f"the folder cannot be read: {error.strerror}"
        fix = "Give yourself the permission to read it, or move it out of the dataset."
        raise UnreadableFile(why, where=str(folder), fix=fix) from None
    return sorted(folder / n for n in names if n.endswith(".parquet") and not n.startswith("."))


def distinct_files(folder: Path) -> list[Path]:
    """List the folder's complete files, of several with the same content only the first.

    Two writers of the same table at the same moment may both have added it.
    """
    first: dict[str, Path] = {}
    for file in parquet_files(folder):
        first.setdefault(content_of(file), file)
    return list(first.values())


def read_parquet(
    path: Path, version: str | tuple[str, ...], columns: list[str] | None = None
) -> pa.Table:
    """Read the table in a file whose metadata names the schema `version`.

    Raises UnreadableFile naming the file when it is missing, truncated, changed since it was written, no
    Parquet, or of another schema.
    """
    data = _bytes(path)
    _require_content(path, BytesIO(data))
    with _damage_explained(path):
        # Threads for small files cost more than they save, and Arrow may abort a process that ends just
        # when they start.
        threads = len(data) >= _THREADS_FROM
        file = parquet_file(path, pa.BufferReader(data), len(data))
        table = file.read(columns, use_threads=threads)
        if not _NAME.fullmatch(path.name):  # others wrote it: texts may be no UTF-8
            table.validate(full=True)
    _require_version(path, table.schema, version)
    return table


def parquet_schema(path: Path) -> pa.Schema:
    """Read the schema of a file from its footer. Raises UnreadableFile."""
    with _damage_explained(path):
        return pq.ParquetFile(path).schema_arrow


def parquet_rows(path: Path) -> int:
    """Return rows in a file, from its footer. Raises UnreadableFile."""
    with _damage_explained(path):
        return pq.ParquetFile(path).metadata.num_rows


@contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    try:
        require_regular(path)
        yield
    except UnreadableFile:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        message = f"not a readable Parquet file: {lines[0]}"
        raise UnreadableFile(message, where=str(path), fix=_RESTORE) from None


def _content(file: BufferedIOBase) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _require_content(path: Path, file: BufferedIOBase) -> None:
    match = _NAME.fullmatch(path.name)
    if match and _content(file) != match[2]:
        message = "its content is not what its name says: truncated or changed since it was written"
        raise UnreadableFile(message, where=str(path), fix=_RESTORE)


def _require_version(path: Path, schema: pa.Schema, version: str | tuple[str, ...]) -> None:
    known = (version,) if isinstance(version, str) else version
    schema_name = (schema.metadata or {}).get(b"schema", b"").decode(errors="replace")
    if schema_name not in known:
        raise UnreadableFile(
            f"its schema is {schema_name or 'not given'}, not {' or '.join(known)}",
            where=str(path),
            fix="Bring foreign tables in with jostle import.",
        )


def _bytes(path: Path) -> bytes:
    try:
        require_regular(path)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None


def signature_of(path: Path) -> tuple[int, ...] | None:
    """Return what differs once a file is changed or exchanged: device, inode, time and size; None if there is
    no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, all on the disk afterwards. Raises OSError."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    there = missing[-1].parent if missing else folder
    # One at a time from above, each on the disk before the next: so only the last that is there may have
    # been made just now by a writer that was killed before it could see to that.
    for place in (there, *reversed(missing)):
        place.mkdir(exist_ok=True)
        with suppress(PermissionError):  # of a folder that may be entered but not be read
            sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Have what was added to or renamed in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def errors_explained(folder: Path, kept: str = "Nothing half-written was left") -> Iterator[None]:
    """Raises NotPermitted for what the system does not allow; kept: what holds all the same."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise NotPermitted(
            "the disk is full" if full else f"cannot write: {error.strerror or error}",
            where=str(folder),
            fix=f"{kept}; make room and do it again."
            if full
            else f"{kept}. Choose a folder that you may write to.",
        ) from error
