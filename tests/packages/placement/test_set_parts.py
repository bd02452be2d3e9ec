"""Parts of sets: different sets have different numbers, however many members they have."""

import numpy as np

from jostle.placement.sets._set_parts import Parts


def test_hundreds_of_tenants_on_one_node_are_told_apart() -> None:
    """Of a node without a limit on slots."""
    parts, members = Parts(50, 2), np.full((3, 700), -1)
    members[:2], members[2, -3:] = 7, 4
    numbers = parts.numbers(np.array([0, 0, 1]), members)
    assert numbers[0] == numbers[1] != numbers[2]
    assert parts.numbers(np.array([1]), members[2:]).tolist() == [numbers[2]]
