"""Figures that only benchmarks draw."""

import pytest
from benchmarks.boosting_figures import critical_differences, error_against_time


def test_errors_against_time_show_every_contestant_and_where_ours_would_be_beaten(tmp_path):
    points = [("ours fast", [1.0, 3.0], [4.0, 3.0]), ("ours slow", [2.0], [5.0]), ("theirs", [9.0], [90.0])]
    figure = error_against_time({"one": points, "two": points}, "ours fast", path=tmp_path / "front.svg")
    first, _, key = figure.axes
    assert [text.get_text() for text in key.get_legend().get_texts()] == [label for label, _, _ in points]
    assert len(first.collections) == 1  # the shade
    corner = first.collections[0].get_paths()[0].vertices.max(axis=0)
    assert tuple(corner) == (1.0, 4.0)
    low, high = first.get_ylim()
    assert low < 3.0 < 5.0 < high < 90.0
    colours = [line.get_color() for line in first.lines[::2]]
    assert colours[2] == "#777777"
    assert len(set(colours)) == 3
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")


def test_critical_differences_put_the_best_rank_first_and_shade_what_is_not_told_from_it(tmp_path):
    found = {"theirs": 2.5, "ours": 1.25, "others": 2.25}
    figure = critical_differences({"ten tables": (found, 1.1)}, "ours", path=tmp_path / "ranks.svg")
    (axes,) = figure.axes
    named = [text.get_text().split()[0] for text in axes.texts]
    assert [name for name in named if name in found] == ["ours", "others", "theirs"]
    shade = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (shade.x0, shade.x1) == pytest.approx((1.25, 2.35))
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert dots == [1.25, 2.25, 2.5]
    assert (tmp_path / "ranks.svg").read_text().startswith("<?xml")
