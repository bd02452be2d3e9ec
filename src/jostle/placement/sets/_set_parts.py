"""Different sets of workloads on platforms, each with a number, and the parts of one member less.

Members are codes in ascending order, -1 before them where a set is smaller than the widest. Equal sets have
one number, which stays; so whatever is known of a set stands at its number in an array.
"""

from __future__ import annotations

import numpy as np

UNKNOWN, NONE = -2, -1


class Parts:
    """Sets of workloads, m of them, each cut into its distinct parts. platform: (m,). members: (m, w)
    ascending. count: (m,) members of each. parts: (m, w) the numbers of the sets without the member of each
    column, NONE for none, UNKNOWN where not looked up."""

    def __init__(self, workloads: int, platforms: int) -> None:
        self._base, self._platforms = workloads + 1, platforms
        self.platform, self.count = np.zeros(0, int), np.zeros(0, int)
        self.members, self.parts = np.zeros((0, 1), int), np.zeros((0, 1), int)
        self._wide = False
        self._keys, self._numbers = np.zeros(0, np.int64), np.zeros(0, int)

    @property
    def width(self) -> int:
        return self.members.shape[1]

    def numbers(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return (n,) the number of each set; those that were not here before are added."""
        members = members[:, members.shape[1] - int((members >= 0).sum(axis=1).max(initial=1)) :]
        if not self._wide and self._platforms * int(self._base) ** members.shape[1] >= 2**62:
            self._wide = True
            keys = self._key(self.platform, self.members)
            order = np.argsort(keys)
            self._keys, self._numbers = keys[order], order
        keys = self._key(platform, members)
        numbers = self._places(keys)
        missing = (numbers < 0).nonzero()[0]
        if len(missing):
            fresh, first = np.unique(keys[missing], return_index=True)
            rows = missing[first]
            start, width = len(self.platform), max(self.width, members.shape[1])
            shape = (start + len(rows), width)
            self.members = resized(self.members, shape, -1)
            self.parts = resized(self.parts, shape, UNKNOWN)
            self.members[start:, width - members.shape[1] :] = members[rows]
            self.platform = np.concatenate([self.platform, platform[rows]])
            self.count = np.concatenate([self.count, (members[rows] >= 0).sum(axis=1)])
            at = np.searchsorted(self._keys, fresh)
            self._numbers = np.insert(self._numbers, at, start + np.arange(len(rows)))
            self._keys = np.insert(
                self._keys.astype(np.promote_types(self._keys.dtype, fresh.dtype)), at, fresh
            )
            numbers = self._places(keys)
        return numbers

    def parts_of(self, at: np.ndarray) -> np.ndarray:
        """Return (n, w) of the sets of these numbers."""
        new = at[(self.parts[at] == UNKNOWN).any(axis=1)]
        if len(new):
            members, columns = self.members[new], np.arange(self.width)
            row, column = ((members >= 0) & (self.count[new] > 1)[:, None]).nonzero()
            others = members[row]
            # What stands before the member moves by one place.
            moved = np.where(columns <= column[:, None], np.roll(others, 1, axis=1), others)
            moved[:, 0] = -1
            numbers = self.numbers(self.platform[new][row], moved)
            self.parts[new] = NONE
            self.parts[new[row], column] = numbers
        return self.parts[at]

    def _places(self, keys: np.ndarray) -> np.ndarray:
        if not len(self._keys):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._numbers[at], -1)

    def _key(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return (n,) equal for equal sets only, however wide: whole numbers, or text where those do not
        suffice."""
        if self._wide:
            digits = np.column_stack([platform + 1, members[:, ::-1] + 1]).astype(">u4")
            return np.ascontiguousarray(digits).view(f"S{4 * digits.shape[1]}").reshape(-1)
        key = np.zeros(len(members), np.int64)
        for column in range(members.shape[1]):
            key = key * self._base + members[:, column] + 1
        return key * self._platforms + platform


def resized(array: np.ndarray, shape: tuple[int, ...], filler: float) -> np.ndarray:
    """Return the array in the last columns of a larger one, and in its first rows."""
    if array.shape == shape:
        return array
    larger = np.full(shape, filler, array.dtype)
    larger[: len(array), shape[1] - array.shape[1] :] = array
    return larger
