"""Parts of sets: different sets have different numbers, however many members they have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.placement.sets._set_parts import Parts


def test_hundreds_of_tenants_on_one_node_are_told_apart() -> None:
    """Of a node without a limit on slots."""
    parts, members = Parts(50, 2), np.full((3, 700), -1)
    members[:2], members[2, -3:] = 7, 4
    numbers = parts.numbers(np.array([0, 0, 1]), members)
    assert numbers[0] == numbers[1] != numbers[2]
    assert parts.numbers(np.array([1]), members[2:]).tolist() == [numbers[2]]


@given(st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 3), max_size=4))))
def test_a_part_is_the_set_without_one_member(asked: list[tuple[int, list[int]]]) -> None:
    parts = Parts(4, 2)
    platform = np.array([where for where, _ in asked], int)
    members = np.array([[-1] * (5 - len(some)) + sorted(some) for _, some in asked]).reshape(-1, 5)
    told = parts.parts_of(parts.numbers(platform, members))[:, -4:]
    for where, row, found in zip(platform, members, told, strict=True):
        some = row[row >= 0]
        for column in range(len(some) if len(some) > 1 else 0):
            left = np.append([-1], np.delete(some, column))
            (part,) = parts.numbers(np.array([where]), left[None])
            assert part == found[found.shape[0] - len(some) + column]
