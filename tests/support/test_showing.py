"""What a person sees of an object, in a terminal and in a notebook."""

import pickle
import re
from itertools import pairwise

import nbclient
import nbformat
import numpy as np
import pytest

from abex import UCB1, Bernoulli, Curves, Graph, Player, UserError, simulate
from abex.evaluation.evaluating import EstimateResult, Evaluation
from abex.graphs import star
from abex.lab.experiments import Claim
from abex.lab.experiments.verdicts import ClaimVerdict, Verdicts
from abex.policies import known_policies
from abex.support.figures import canvas, style_of
from abex.support.tables import markdown_of
from tests.each import each
from tests.examples import examples
from tests.waiting import KERNEL_PATIENCE


def curves_of(means, replications=20, names=None):
    """Curves whose final regrets have these means."""
    noise = np.random.default_rng(0).normal(size=(1, replications, 1))
    regret = np.array(means)[:, None, None] * np.array([0.1, 1.0]) + noise
    names = names or tuple(f"P{place}" for place in range(len(means)))
    ones = np.ones((len(means), replications))
    about = {"environment": "Bernoulli(means=[...])", "arms": 3, "graph": ""}
    return Curves(names, np.array([10, 100]), regret, np.ones_like(regret), ones, about=about)


def test_curves_are_short_in_a_terminal_and_a_figure_with_a_table_in_a_notebook():
    curves = curves_of([5.0, 3.0])
    assert repr(curves) == "<Curves: 2 policies in Bernoulli with 3 arms, 100 steps, 20 replications>"
    page = curves._repr_html_()
    assert page.startswith('<img alt="Regret of 2 policies')
    assert page.index(">P1</td>") < page.index(">P0</td>")  # least regret first
    assert [row[0] for row in curves.table()] == ["P1", "P0"]


def test_a_difference_prints_as_a_sentence_and_is_three_arrays():
    curves = curves_of([5.0, 3.0, 3.0])
    found = curves.difference("P1", "P0")
    mean, low, high = found
    np.testing.assert_array_equal(mean, found.mean)
    np.testing.assert_array_equal((low, high), (found.low, found.high))
    assert repr(found).startswith(
        "After 100 steps P1 has 2 less regret than P0 (95% interval of the difference -2"
    )
    assert repr(found).endswith("20 paired replications): P1 is better.")
    assert repr(curves.difference("P0", "P1")).endswith("P1 is better.")
    assert "the same regret" in repr(curves.difference("P1", "P2"))
    assert "says nothing about chance" in repr(curves_of([5.0, 3.0], replications=1).difference("P1", "P0"))
    noisy = curves_of([0.0, 0.01])
    noisy.regret[0] += np.random.default_rng(1).normal(size=noisy.regret[0].shape)
    assert "cannot be told" in repr(noisy.difference("P0", "P1"))
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)


def test_plots_take_axes_title_labels_and_size(tmp_path):
    curves = curves_of([5.0, 3.0])
    figure = curves.plot(
        tmp_path / "x.png", figsize=(5.0, 3.0), title="Mine", labels={"P1": "second"}, log=False
    )
    assert (tmp_path / "x.png").stat().st_size > 1000
    assert figure._repr_png_()[:4] == b"\x89PNG"
    assert tuple(figure.get_size_inches()) == (5.0, 3.0)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "Mine"
    assert axes.get_xscale() == "linear"
    assert {"P0", "second"} <= {text.get_text() for text in axes.texts}
    _, given = canvas()
    assert curves.plot(ax=given, labels=["a", "b"]) is given
    assert len(given.lines) == 4  # two lines, and a piece of each beside its label
    with pytest.raises(UserError, match="labels must name each of the 2 policies"):
        curves.plot(labels=["only one"])
    with pytest.raises(UserError, match="is not here"):
        curves.plot(labels={"P7": "x"})


def test_a_dozen_lines_are_told_apart_by_style_as_well_as_colour():
    styles = [style_of(position) for position in range(12)]
    assert len({str(style) for style in styles}) == 12
    for one, other in pairwise(styles):
        assert one["color"] != other["color"]
        assert one["linestyle"] != other["linestyle"]
    axes = curves_of(range(12)).plot().axes[0]
    labels = sorted(text.get_position()[1] for text in axes.texts if text.get_text().startswith("P"))
    assert len(labels) == 12
    assert min(np.diff(labels)) > 0.03  # none lies on another


def test_a_notebook_tells_the_size_of_a_graph():
    page = star(9)._repr_html_()
    assert ">8 undirected</td>" in page
    assert ">1 to 8, 1.8 on average</td>" in page
    assert ">2 directed</td>" in Graph.from_edges([(0, 1), (1, 2)], 3, directed=True)._repr_html_()


@each("name", sorted(n for n, cls in known_policies().items() if cls.__module__.startswith("abex.")))
def test_every_policy_shows_its_rule(name):
    policy = examples(known_policies()[name])[0]
    text = policy._repr_markdown_()
    assert text.startswith(f"**{policy}**. ")
    assert ":math:" not in text
    assert "---" not in text
    assert text.count("$") % 2 == 0


def test_formulas_of_docstrings_become_markdown():
    text = r"""Rule.

    .. math::

        a = b,
        c

    In words, :func:`x` of ``y`` and :math:`\eta`.

    Notes
    -----
    Nothing of this.
    """
    assert markdown_of(text.replace("\n    ", "\n")).split("\n") == [
        "Rule.",
        "",
        "$$a = b, c$$",
        r"In words, `x` of `y` and $\eta$.",
    ]
    assert r"$\hat\mu_k + \sqrt{a \ln t / N_k}$" in UCB1()._repr_markdown_()


def test_a_player_shows_its_arms_and_a_very_large_one_a_line():
    player = Player(arms=["red", "<b>"], seed=1)
    page = player._repr_html_()
    assert ">red</td>" in page
    assert ">&lt;b&gt;</td>" in page
    assert Player(n_arms=2_000)._repr_html_() == "&lt;Player of Evidence with 2000 arms after 0 decisions&gt;"


def test_verdicts_show_as_tables():
    verdict = ClaimVerdict(Claim("A beats B", "better", "A", ("B",)), "-3 [-4, -2]", "holds", "better")
    assert repr(Verdicts([verdict])) == "A beats B: holds (-3 [-4, -2])"
    assert ">holds</td>" in verdict._repr_html_()
    nan = float("nan")
    values = (
        EstimateResult("IPS", 0.5, (0.4, 0.6), 90.0, 2.0, "", 0.5),
        EstimateResult("DM", nan, (nan, nan), 0.0, nan, "why", nan),
    )
    always = EstimateResult("always", 0.5, (0.3, 0.7), 90.0, 2.0, "", 0.5)
    page = Evaluation("UCB1", 100, 0, 0.95, np.ones(2) / 2, values, always, "one look")._repr_html_()
    assert ">[0.4, 0.6]</td>" in page
    assert ">cannot tell</td>" in page


def test_a_boosted_model_tells_what_it_is_made_of():
    from sklearn.datasets import load_iris

    from abex.boosting import AdaBoostMHClassifier

    X, y = load_iris(return_X_y=True)
    model = AdaBoostMHClassifier(n_estimators=12, base="stump", random_state=1).fit(X, y).model_
    assert repr(model) == "<Model: 12 stumps, 3 labels, 4 features>"


def test_a_notebook_shows_figures_and_a_bar_and_keeps_no_bar():
    cells = [
        "import abex.support.progress\nabex.support.progress.PATIENCE = 0.0\n"
        "from abex import *\ncurves = simulate(UCB1(), Bernoulli([0.9, 0.5]), horizon=20_000, replications=10)",
        "curves",
        "curves.plot()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    shown = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, *rest):
            shown.append(str(message["content"].get("text", "")))
            return super().process_message(message, *rest)

    Client(notebook, kernel_name="python3", **KERNEL_PATIENCE).execute()
    assert re.search(r"simulate: .*left", "".join(shown))
    kept = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    assert kept.split("\r")[-1].strip() == ""
    assert "text/html" in notebook.cells[1].outputs[0]["data"]
    assert "image/png" in notebook.cells[2].outputs[0]["data"]
    assert simulate(UCB1(), Bernoulli([0.9, 0.5]), horizon=10) is not None  # and here none is asked for
