"""Statistics of curves against their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest

from abex import Curves, UserError
from abex.simulation.curves import interval_of_mean
from abex.support.randomness import stream


def some_curves(replications=50):
    rng = stream(1, "curves")
    shared = rng.normal(size=(1, replications, 3))
    regret = shared * 10 + rng.normal(size=(2, replications, 3)) + np.array([0.0, 5.0])[:, None, None]
    return Curves(
        ("A(x=1)", "B"), np.array([1, 10, 100]), regret, np.ones_like(regret), np.ones((2, replications))
    )


def test_mean_error_and_quantiles_are_those_of_the_replications():
    curves = some_curves()
    values = curves.regret[1]
    assert np.allclose(curves.mean("B"), values.mean(axis=0))
    assert np.allclose(curves.standard_error("B"), values.std(axis=0, ddof=1) / math.sqrt(50))
    assert np.allclose(curves.quantile("B", 0.5), np.median(values, axis=0))


def test_bands_cover_the_truth_as_often_as_they_say():
    """Coverage of nominal 90 % intervals over 400 data sets, within 4 standard errors."""
    rng = stream(2, "coverage")
    inside = 0
    for _ in range(400):
        low, high = interval_of_mean(rng.normal(3.0, 2.0, size=(40, 1)), 0.9)
        inside += bool(low[0] <= 3.0 <= high[0])
    assert abs(inside / 400 - 0.9) < 4 * math.sqrt(0.09 / 400)


def test_paired_differences_are_narrower_than_the_bands():
    curves = some_curves()
    mean, low, high = curves.difference("A", "B")
    assert np.allclose(mean, (curves.regret[0] - curves.regret[1]).mean(axis=0))
    assert (high < 0).all()
    assert (high - low < 0.5 * (curves.band("B")[1] - curves.band("B")[0])).all()


def test_policies_are_found_by_full_name_or_by_a_unique_one():
    curves = some_curves()
    assert curves.index("A") == curves.index("A(x=1)") == 0
    with pytest.raises(UserError, match="is not here"):
        curves.index("C")
    double = Curves(
        ("A(x=1)", "A(x=2)"), curves.checkpoints, curves.regret, curves.optimal_pulls, curves.nanoseconds
    )
    with pytest.raises(UserError, match="fits several"):
        double.index("A")


def test_the_frame_has_a_row_for_every_number():
    curves = some_curves(4)
    frame = curves.to_frame()
    assert list(frame.columns) == ["policy", "replication", "step", "regret", "optimal_pulls"]
    picked = frame[(frame.policy == "B") & (frame.replication == 2) & (frame.step == 10)]
    assert picked.regret.item() == curves.regret[1, 2, 1]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_are_written_and_the_same_every_time(tmp_path, kind):
    curves = some_curves(5)
    for name in ("first", "second"):
        curves.plot(tmp_path / f"{name}.{kind}")
    first, second = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("first", "second"))
    assert len(first) > 1000
    assert first == second


def test_a_figure_of_unknown_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.png, \.svg or \.pdf"):
        some_curves().plot(tmp_path / "figure.bmp")


def test_one_replication_has_no_band_but_a_figure(tmp_path):
    curves = some_curves(1)
    assert np.isnan(curves.standard_error("B")).all()
    curves.plot(tmp_path / "one.png")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY", b"hello"])
def test_damaged_curves_give_one_clear_error(tmp_path, content):
    path = tmp_path / "curves.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged or not ours"):
        Curves.load(path)
    with pytest.raises(UserError, match="no such file"):
        Curves.load(tmp_path / "nowhere.npz")


def test_curves_that_would_execute_code_are_refused(tmp_path):
    path = tmp_path / "curves.npz"
    np.savez(path, header=np.array([{"format": "abex-curves"}], dtype=object))
    with pytest.raises(UserError, match="damaged or not ours"):
        Curves.load(path)


def test_a_part_of_the_policies_is_taken_by_name_in_the_order_given():
    curves = some_curves()
    turned = curves[["B", "A"]]
    assert turned.policies == ("B", "A(x=1)")
    assert np.array_equal(turned.mean("A"), curves.mean("A"))
    assert np.array_equal(curves["B"].regret, curves.regret[1:])
    for wrong, why in ([], "at least one"), (["A", "A(x=1)"], "twice"), ("C", "is not here"):
        with pytest.raises(UserError, match=why):
            curves[wrong]


def test_a_table_of_a_paper_has_the_least_regret_in_bold():
    curves = some_curves(4)
    least, most = curves.table()[0], curves.table()[1]
    assert least[0] == "A(x=1)"
    markdown = curves.table(format="markdown").splitlines()
    assert markdown[2].startswith(f"| A(x=1) | **{least[1]}** |")
    assert markdown[3].startswith(f"| B | {most[1]} |")
    latex = curves.table(0.9, format="latex")
    for part in rf"\textbf{{{least[1]}}}", r"90\% interval", r"\bottomrule":
        assert part in latex
    assert f"<b>{least[1]}</b>" in curves.table(format="html")
    with pytest.raises(UserError, match="unknown format 'word'"):
        curves.table(format="word")


def drawn_lines(axes):
    """The lines with a name of ours, in the order in which they were drawn."""
    return [line for line in axes.lines if not line.get_label().startswith("_")]


def test_a_figure_has_the_policies_asked_for_in_the_order_asked_for():
    curves = some_curves()
    (axes,) = curves.plot(policies=["B", "A"], labels={"A": "ours"}).axes
    assert [line.get_label() for line in drawn_lines(axes)] == ["B", "ours"]
    (axes,) = curves.plot(policies=["B", "A"], order="regret", legend="inside", log="both").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["A(x=1)", "B"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    for wrong in {"legend": "under"}, {"style": "poster"}, {"order": "name"}, {"log": "z"}:
        with pytest.raises(UserError, match=r"known: |log must be"):
            curves.plot(**wrong)


@pytest.mark.parametrize(("style", "width"), [("paper", 3.3), ("paper-wide", 6.9)])
def test_a_figure_for_a_paper_has_its_width_and_small_type_and_no_title(style, width):
    figure = some_curves().plot(style=style, legend="outside")
    (axes,) = figure.axes
    assert figure.get_figwidth() == width
    assert not axes.get_title()
    sizes = [axes.xaxis.label.get_size(), *(text.get_size() for text in axes.get_legend().get_texts())]
    assert max(sizes) <= 8.0


def test_twenty_lines_are_told_apart_without_colours():
    shape = np.ones((20, 1, 3))
    names = tuple(f"P{k}" for k in range(20))
    (axes,) = Curves(names, np.array([1, 10, 100]), shape, shape, np.ones((20, 1))).plot().axes
    looks = {
        (str(line.get_linestyle()), str(line._unscaled_dash_pattern), line.get_marker())
        for line in drawn_lines(axes)
    }
    assert len(looks) == 20


@pytest.mark.parametrize("style", ["screen", "paper", "paper-wide"])
@pytest.mark.parametrize("legend", ["ends", "inside", "outside", "below"])
@pytest.mark.parametrize("lines", [5, 20])
def test_names_lie_in_the_picture_and_not_on_each_other_and_leave_room_for_the_lines(style, legend, lines):
    names = tuple(f"Certify(Thompson, share=0.{k})" for k in range(lines))
    shape = np.geomspace(1.0, 1e4, lines)[:, None, None] * np.ones((1, 3))
    curves = Curves(names, np.array([1, 10, 100]), shape, shape, np.ones((lines, 1)))
    figure = curves.plot(style=style, legend=legend)
    figure.canvas.draw()
    (axes,) = figure.axes
    keys = [key for key in (*figure.legends, axes.get_legend()) if key is not None]
    told = [text for key in keys for text in key.get_texts()] or [
        text for text in axes.texts if text.get_text() in names
    ]
    boxes = [text.get_window_extent() for text in told]
    assert len(boxes) == lines
    whole = figure.bbox
    assert all(box.x0 >= 0 and box.x1 <= whole.x1 and box.y0 >= 0 and box.y1 <= whole.y1 for box in boxes)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert axes.bbox.width >= 0.4 * whole.width
    assert axes.bbox.height >= 1.2 * figure.dpi  # inches
