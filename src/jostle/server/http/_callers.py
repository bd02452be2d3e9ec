"""Who asks, by a key or a client certificate, in one of three roles; how many requests each may send."""

from __future__ import annotations

import codecs
import hmac
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jostle._base.files import signature_of
from jostle._base.untrusted import require_regular
from jostle.errors import UsageError

ROLES = ("read", "write", "administer")  # each may what those before it may
CERTIFICATE = "certificate"
_MOST_BUCKETS = 10_000
_LOG = logging.getLogger("jostle.server")


@dataclass(frozen=True)
class Caller:
    """A caller with a key and a role. name: of the key. key: what is sent, or `certificate`: a client
    certificate of that common name is."""

    name: str
    role: str
    key: str

    def may(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def read_keys(path: Path) -> tuple[Caller, ...]:
    """Read lines `NAME ROLE KEY`. Returns nothing for a file without keys. Raises UsageError."""
    try:
        require_regular(path)
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the API keys cannot be read: {error}", where=str(path)) from error
    callers, role_of = list[Caller](), dict[str, str]()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or words[1] not in ROLES:
            fix = f"Write NAME ROLE KEY, with one of the roles {', '.join(ROLES)}."
            raise UsageError(f"line {number} is not an API key", where=str(path), fix=fix)
        if words[2] != CERTIFICATE and role_of.setdefault(words[2], words[1]) != words[1]:
            what = f"line {number} gives a key another role than a line before"
            raise UsageError(what, where=str(path), fix="Give each key one role.")
        callers.append(Caller(*words))
    return tuple(callers)


class Callers:
    """The callers of the file of keys. path: the file of keys, read again when it changes; without one
    everybody may do everything.

    per_second: requests of one caller. clock: monotonic seconds. Raises UsageError for a file without keys.
    """

    def __init__(self, path: Path | None, per_second: float, clock: Callable[[], float]) -> None:
        self.path, self.per_second, self.clock = path, per_second, clock
        self._known = () if path is None else read_keys(path)
        if path is not None and not self._known:
            raise UsageError("there is no API key", where=str(path))
        self._signature = path and signature_of(path)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.bodies: Counter[str] = Counter()  # bytes that are being received, by address

    def of(self, token: str, certificate: str) -> Caller | None:
        """Find the caller. token: as sent. certificate: common name of one that was verified. None: nobody
        who is known."""
        if self.path is None:
            return Caller("anybody", ROLES[-1], "")
        self._read_again(self.path)
        found = None
        for one in self._known:  # all of them, so that the time tells nothing
            by_name = one.key == CERTIFICATE
            sent, right = (certificate, one.name) if by_name else (token, one.key)
            if hmac.compare_digest(sent.encode(), right.encode()) and sent:
                found = one
        return found

    def waits(self, name: str) -> float:
        """Return the seconds until this caller may ask again, 0 where it may now, which then counts."""
        left = self._left(name)
        if left >= 1:
            self.charge(name, 1)
        return 0.0 if left >= 1 else (1 - left) / self.per_second

    def charge(self, name: str, requests: float) -> None:
        """Count what was let in already as so many requests, for which this caller waits afterwards."""
        self._buckets[name] = self._left(name) - requests, self.clock()
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)

    def _left(self, name: str) -> float:
        """Return requests that this caller may send at once."""
        burst, now = max(1.0, self.per_second), self.clock()
        left, at = self._buckets.get(name, (burst, now))
        return min(burst, left + (now - at) * self.per_second)

    def _read_again(self, path: Path) -> None:
        signature = signature_of(path)
        if signature == self._signature:
            return
        self._signature = signature
        try:
            self._known = () if signature is None else read_keys(path)
            _LOG.warning("%d API keys are taken from now on", len(self._known))
        except UsageError as error:
            _LOG.warning("the keys of before go on to be taken: %s", error)
