"""Figures and tables that only benchmarks make."""

import dataclasses
import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from benchmarks import paper
from benchmarks.boosting_figures import critical_differences, error_against_time

from abex.lab.experiments import Claim, Experiment, collect, run_experiment
from abex.lab.experiments.experiment import line
from abex.lab.experiments.verdicts import judge_all
from abex.lab.results import Store

COIN = (Claim("UCB1 beats a coin", "better", "UCB1", ("coin",), margin=1.0),)


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


def panel(name: str, **more) -> Experiment:
    lines = (line("UCB1", "UCB1"), line("coin", "Uniform"), line("UCB1, tuned", "UCB1(scale=0.5)"))
    problem = {"environment": {"name": "Bernoulli", "means": [0.8, 0.4]}}
    about = {"figure": "Figure 9a", "title": f"Two arms & {name}", "claims": COIN, "seeds": 6, "length": 200}
    return Experiment(name=name, problem=problem, lines=lines, **{**about, **more})


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder with a panel that is complete, and with one that is not."""
    builders = {name: partial(panel, name) for name in ("whole", "open")}
    monkeypatch.setattr(paper, "known_experiments", lambda: builders)
    with Store(tmp_path / "cells.sqlite") as store:
        run_experiment(panel("whole"), store)
        store.save_experiment("open-v1", panel("open", seeds=9).to_json())
    return tmp_path


def test_the_pages_of_the_paper_get_what_is_complete_and_keep_their_tables_until_all_is(
    results, monkeypatch, capsys
):
    docs = results / "docs"
    docs.mkdir()
    monkeypatch.setattr(sys, "argv", ["paper", str(results), "--docs", str(docs)])
    paper.main()
    assert "the tables of experiments.md stay, since these are not complete: open" in capsys.readouterr().out
    assert {path.name for path in docs.rglob("*.*")} == {"whole.svg", "panels.json"}
    (told,) = json.loads((docs / "figures" / "paper" / "panels.json").read_text()).values()
    with Store(results / "cells.sqlite") as store:
        outcome = collect(panel("whole"), store)
    (verdict,) = judge_all([outcome])[0]
    found = {"claim": "UCB1 beats a coin", "alone": verdict.answer, "together": verdict.overall}
    assert told["verdicts"] == [{**found, "measured": verdict.measured}]
    assert told["alt"].startswith(
        f"regret at the end, from the largest down: coin {outcome.get('coin').mean[-1]:,.4g}"
    )
    assert told["lines"][2][1] == "`UCB1(scale=0.5)`"
    picture = (docs / "figures" / "paper" / "whole.svg").read_text()
    numbers = re.findall(r"\d+\.\d+", " ".join(re.findall(r' d="([^"]*)"', picture)))
    assert max(len(number.split(".")[1]) for number in numbers) == 2


def test_tables_of_the_paper_say_what_the_outcomes_say(results):
    with Store(results / "cells.sqlite") as store:
        (found,) = paper.panels_of(store)
    verdict, outcome = found.verdicts[0], found.outcome
    tuned, coin = outcome.get("UCB1, tuned"), outcome.get("coin")
    low, high = tuned.estimate().interval()
    row = paper.network_table(
        {"whole": found}, "Two arms", (("whole", "UCB1, tuned", "tuned"),)
    ).splitlines()[-1]
    assert row.startswith(
        f"| tuned: `UCB1(scale=0.5)` | {tuned.estimate().mean:,.2f} [{low:,.2f}, {high:,.2f}] | "
    )
    share = f"{100 * (tuned.final - tuned.loss_at(100) >= 0.9 * tuned.loss_at(100)).mean():.2g} % | 6 |"
    assert row.endswith(share)
    locked = dataclasses.replace(coin, loss=np.tile(coin.step, (6, 1)))
    assert outcome.experiment.task.spread(locked)["locked"] == "100 %"
    shown = paper.answer_of(outcome, verdict, True)
    mean = (outcome.get("UCB1").final - coin.final).mean()
    assert shown.startswith(f"**yes**, {mean:+.2f} [")
    assert paper.answer_of(outcome, verdict, False) == "**yes**"
    assert paper.counts([verdict, verdict], lambda one: one.overall) == "2 hold, 0 do not, 0 cannot be told"
