"""The vision bags are what they say, and small."""

from __future__ import annotations

from jostle.data import VISION_CPU, vision_bags


def test_every_workload_is_there_alone_and_in_bags_on_both_platforms() -> None:
    runs = vision_bags()
    c = runs.colocations
    assert runs.is_ok.all()
    assert VISION_CPU in c.platform_names
    assert len(c.platform_names) == 2
    assert len(c.workload_names) == 27
    alone = c.number_of_corunners == 0
    cells = set(zip(c.workload[alone].tolist(), c.platform[alone].tolist(), strict=True))
    assert len(cells) == 54
    assert set(c.number_of_corunners.tolist()) == {0, 1, 2}
    names, table = runs.features_of("workload")
    assert table is not None
    assert set(names) == set(c.workload_names)
    assert len(set(table.column("kernel").to_pylist())) == 9
