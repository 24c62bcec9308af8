from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from abex.cli import main
from abex.cli.results import as_frame
from abex.lab.experiments import (
    Experiment,
    collect,
    known_experiments,
    read_experiment,
    run_experiment,
)
from abex.lab.experiments.execution import chosen, loss_of, plan, plateau, tuning_cells
from abex.lab.experiments.experiment import VALIDATION, Stratum, equivalent_policies, line
from abex.lab.experiments.panels import paper_figure
from abex.lab.experiments.verdicts import HOLDS, judge
from abex.lab.results import CellResult, Store, key_of
from abex.lab.sweeps.bandit_cells import replications_of
from abex.lab.sweeps.boosting_cells import judged_rows
from abex.support.errors import UserError
from tests.each import each

PROBLEM = {"environment": {"name": "Bernoulli", "means": [0.8, 0.4]}}
FILE = """
name = "two-arms"
title = "Two arms"
horizon = 3e2
seeds = 5
validation_seeds = 2
checkpoints = 10
policies = [
  "UCB1",
  { policy = "Uniform", label = "coin" },
  { label = "tuned", candidates = ["Boltzmann(eta=0.01)", "Boltzmann(eta=2.0)"] },
]
[problem.environment]
name = "Bernoulli"
means = [0.8, 0.4]
[[claims]]
text = "UCB1 beats a coin"
rule = "better"
first = "UCB1"
second = ["coin"]
"""


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as opened:
        yield opened


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


def small(**more) -> Experiment:
    lines = (line("UCB1", "UCB1"), line("coin", "Uniform"))
    return Experiment(
        **{
            "name": "small",
            "title": "Small",
            "problem": PROBLEM,
            "lines": lines,
            "length": 200,
            "seeds": 3,
            **more,
        }
    )


# -- files ----------------------------------------------------------------------------------------------------


def test_a_file_is_run_stored_drawn_and_judged(file, store):
    experiment = read_experiment(file)
    run_experiment(experiment, store)
    outcome = collect(experiment, store)
    assert [drawn.label for drawn in outcome.lines] == ["UCB1", "coin", "tuned"]
    assert [len(drawn.replications) for drawn in outcome.lines] == [5, 5, 5]
    assert outcome.missing == 0
    assert judge(outcome)[0].answer == HOLDS
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment


@each(
    ("wrong", "right", "message"),
    [
        ("horizon", "horison", r"mine\.toml: unknown key 'horison'.*did you mean 'horizon'"),
        ('policy = "Uniform"', 'polici = "Uniform"', r"unknown key 'polici' in policies\[1\].*'policy'"),
        ("seeds = 5", 'seeds = "four"', r"mine\.toml: seeds: expected `int`, got `str`"),
        ("seeds = 5", "seeds = 0", r"seeds: expected `int` >= 1"),
        ('"UCB1",', '"UBC1",', r"mine\.toml: unknown policy 'UBC1'.*did you mean 'UCB1'"),
        ("eta=2.0", "etta=2.0", r"Boltzmann has no parameter 'etta'.*'eta'"),
        ('name = "Bernoulli"', 'name = "Bernouli"', r"unknown environment 'Bernouli'.*'Bernoulli'"),
        ("means =", "meens =", r"Bernoulli has no parameter 'meens'.*'means'"),
        ("[problem.environment]", "[problem.enviroment]", r"no key 'enviroment'.*'environment'"),
        ('second = ["coin"]', 'second = ["coim"]', r"unknown line 'coim'.*'coin'"),
        ('rule = "better"', 'rule = "beter"', r"unknown rule 'beter'.*'better'"),
        ('rule = "better"', "", r"the key 'rule' is missing in claims\[0\]"),
        ('rule = "better"', 'rule = "better"\nrul = 1', r"unknown key 'rul' in claims\[0\].*'rule'"),
        ('name = "two-arms"', 'name = "Two Arms!"', r"name must be words"),
        ("horizon = 3e2", "", r"horizon is missing"),
        ("horizon = 3e2", "horizon = 300\niterations = 5", r"iterations is not for the kind 'bandit'"),
        ('label = "coin"', 'label = "UCB1"', r"two lines called 'UCB1'"),
        ("title =", "title", r"mine\.toml is not TOML"),
        ('name = "two-arms"', "", r"the key 'name' is missing.*above the first \[table\]"),
        ('name = "two-arms"', 'name = "two-arms"\nkind = "bandits"', r"unknown kind 'bandits'.*'bandit'"),
        ('first = "UCB1"', 'first = "UCB1"\nat = 301', r"at must be at most 300, got 301"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_nearest_right_word(file, wrong, right, message):
    assert wrong in FILE
    file.write_text(FILE.replace(wrong, right))
    with pytest.raises(UserError, match=message):
        read_experiment(file)


def test_a_policy_file_of_ones_own_is_part_of_the_experiment(file, store):
    (file.parent / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom abex import UCB1\n"
        "@dataclass(frozen=True)\nclass Bolder(UCB1):\n    pass\n"
    )
    file.write_text(
        'own = ["mine.py"]\n' + FILE.replace('"UCB1",', '{ policy = "Bolder(scale=3.0)", label = "UCB1" },')
    )
    experiment = read_experiment(file)
    run_experiment(experiment, store)
    assert collect(experiment, store).get("UCB1").policy == "Bolder(scale=3.0)"
    (file.parent / "mine.py").unlink()
    with pytest.raises(UserError, match=r"mine\.py"):
        read_experiment(file)


# -- running --------------------------------------------------------------------------------------------------


def test_parameters_are_chosen_on_validation_runs_that_are_not_drawn(file, store):
    experiment = read_experiment(file)
    tuning = tuning_cells(experiment)
    assert {cell["replication"] for cell in tuning} == {VALIDATION, VALIDATION + 1}
    run_experiment(experiment, store)
    line_ = experiment.line("tuned")
    losses = [
        np.mean(
            [
                loss_of(experiment.task, store.get(cell).arrays)
                for cell in experiment.tuning_cells(line_, text)
            ]
        )
        for text in line_.candidates
    ]
    assert chosen(experiment, line_, store) == line_.candidates[int(np.argmin(losses))]


def test_candidates_can_be_chosen_by_an_early_loss(store):
    lines = (line("start", "UCB1", "Uniform", tuned_at=50), line("end", "UCB1", "Uniform"))
    experiment = small(lines=lines, length=100)
    losses = {"UCB1()": [1.0, 9.0], "Uniform()": [2.0, 8.0]}
    for text, regret in zip(lines[0].candidates, losses.values(), strict=True):
        arrays = {"step": np.array([50, 100]), "regret": np.array(regret)}
        store.put([(cell, CellResult(arrays)) for cell in experiment.tuning_cells(lines[0], text)])
    assert [chosen(experiment, one, store) for one in lines] == list(lines[0].candidates)


def test_the_version_of_an_experiment_is_part_of_its_cells():
    one, two = small(), small(version=2)
    assert key_of(one.cells(one.lines[0], "UCB1()")[0]) != key_of(two.cells(two.lines[0], "UCB1()")[0])


def test_more_seeds_compute_only_the_new_ones(store):
    run_experiment(small(), store)
    (state,) = run_experiment(small(seeds=5), store)
    assert (state.stored, state.computed) == (6, 4)


def test_equal_lines_of_two_experiments_are_computed_once(store):
    run_experiment(small(), store)
    other = small(name="other", lines=(line("the same", "UCB1(scale=2.0)"),))
    (state,) = run_experiment(other, store)
    assert (state.stored, state.computed) == (3, 0)


def test_a_cell_of_several_replications_holds_what_single_cells_hold(store, tmp_path):
    one, several = small(seeds=7), small(seeds=7, block=3)
    cells = several.cells(several.lines[0], "UCB1(scale=2.0)")
    assert [(cell["replication"], cell["replications"]) for cell in cells] == [(0, 3), (3, 3), (6, 1)]
    run_experiment(one, store)
    run_experiment(several, store)
    for label in ("UCB1", "coin"):
        a, b = (collect(experiment, store).get(label) for experiment in (one, several))
        assert a.replications == b.replications == tuple(range(7))
        np.testing.assert_array_equal(a.loss, b.loss)
    frame = as_frame(store)
    counts = frame.groupby(["policy", "replication"]).size()
    assert (counts == 2 * collect(one, store).get("UCB1").step.size).all()


def test_more_replications_leave_full_blocks_as_they_are():
    one, more = small(seeds=100, block=50), small(seeds=130, block=50)
    keys = [[key_of(cell) for cell in each.cells(each.lines[0], "UCB1()")] for each in (one, more)]
    assert keys[1][:2] == keys[0]


def test_strata_are_sampled_apart_and_weighed():
    problem = {"environment": {"name": "SpecialArm", "K": 4}}
    strata = tuple(
        Stratum(name, weight, share, {"environment": {"name": "SpecialArm", "K": 4, "among": among}})
        for name, weight, share, among in (("most", 0.75, 0.6, [0, 1, 2]), ("last", 0.25, 0.4, [3]))
    )
    experiment = small(problem=problem, strata=strata, seeds=10, block=4)
    cells = experiment.cells(experiment.lines[0], "UCB1()")
    runs = [(cell["problem"]["environment"]["among"], r) for cell in cells for r in replications_of(cell)]
    assert [len(among) for among, _ in runs] == [3] * 6 + [1] * 4
    assert len({r for _, r in runs}) == 10  # no random number is shared between strata
    assert Experiment.from_json(json.loads(json.dumps(experiment.to_json()))) == experiment
    with pytest.raises(UserError, match="add up to 1"):
        small(problem=problem, strata=strata[:1])


def test_strata_have_the_mean_of_plain_sampling(store):
    """A uniform policy loses 1/4 of the time nothing, whichever arm is special: both designs agree to four errors."""
    problem = {"environment": {"name": "SpecialArm", "K": 4}}
    strata = tuple(
        Stratum(
            str(among), len(among) / 4, 0.5, {"environment": {"name": "SpecialArm", "K": 4, "among": among}}
        )
        for among in ([0, 1, 2], [3])
    )
    plain = small(problem=problem, seeds=200, block=50)
    apart = small(name="apart", problem=problem, strata=strata, seeds=200, block=50)
    found = []
    for experiment in (plain, apart):
        run_experiment(experiment, store)
        found.append(collect(experiment, store).get("UCB1").estimate())
    assert abs(found[0].mean - found[1].mean) < 4 * np.hypot(found[0].error, found[1].error)


def test_lines_that_are_one_algorithm_share_their_cells(store):
    lines = (
        line("(0.1, 0.7)", "ABE(c=0.1, alpha=0.7)"),
        line("(0.2, 0.5)", "ABE(c=0.2, alpha=0.5)"),
        line("Boltzmann", "Boltzmann(eta=0.4)"),
        line("explores", "ABE(c=1.0, alpha=0.5)"),
    )
    experiment = small(lines=lines, seeds=5, equivalent=equivalent_policies(lines, 2, 200))
    (state,) = run_experiment(experiment, store)
    assert (state.total, state.computed) == (10, 10)
    outcome = collect(experiment, store)
    np.testing.assert_array_equal(outcome.get("(0.1, 0.7)").loss, outcome.get("Boltzmann").loss)
    assert (
        outcome.get("(0.2, 0.5)").played
        == outcome.get("Boltzmann").played
        == "Boltzmann(eta=0.4, schedule='sqrt', initial=0.0)"
    )
    assert outcome.get("explores").numbers["exploration_slots"][0] > 0


def test_a_line_is_drawn_to_where_its_validation_loss_stops_falling(store):
    lines = (line("search", "UCB1", plateau=True),)
    experiment = small(lines=lines, length=32, seeds=1, validation_seeds=3)
    steps = np.array([1, 2, 4, 8, 16, 32])
    (validation,) = experiment.tuning_cells(lines[0], lines[0].candidates[0])
    store.put(
        [(validation, CellResult({"step": steps, "regret": np.array([9.0, 6.0, 5.0, 4.99, 4.98, 4.96])}))]
    )
    assert plateau(experiment, lines[0], store) == (4, True)
    cells = experiment.cells(lines[0], lines[0].candidates[0])
    regret = np.array([9.0, 7.0, 6.0, 5.0, 4.0, 3.0])
    store.put(
        [(cell, CellResult({"step": steps, "regret": regret}, {}, {"nanoseconds": 1.0})) for cell in cells]
    )
    drawn = collect(experiment, store).get("search")
    assert (drawn.step[-1], drawn.final.tolist(), drawn.ended) == (4.0, [6.0], True)


def test_a_fall_of_a_few_validation_rows_is_no_fall(store):
    lines = (line("search", "UCB1", plateau=True),)
    problem = {"data": "digits", "part": "validation"}
    experiment = small(
        kind="boosting", problem=problem, validation=problem, lines=lines, length=32, seeds=1, rows_at=()
    )
    rows = judged_rows(problem)
    wrong = np.array([90.0, 60.0, 50.0, 49.0, 47.0, 46.0])  # of so many rows; 1 % of 50 would be half a row
    (cell,) = experiment.tuning_cells(lines[0], lines[0].candidates[0])
    store.put([(cell, CellResult({"step": np.array([1, 2, 4, 8, 16, 32]), "error": wrong / rows}))])
    assert plateau(experiment, lines[0], store) == (4, True)
    experiment = dataclasses.replace(experiment, seed=2)
    (cell,) = experiment.tuning_cells(lines[0], lines[0].candidates[0])
    wrong[-1] = 45.0
    store.put([(cell, CellResult({"step": np.array([1, 2, 4, 8, 16, 32]), "error": wrong / rows}))])
    assert plateau(experiment, lines[0], store) == (8, True)


def test_a_dry_run_says_what_is_missing(file, store):
    experiment = read_experiment(file)
    rows = plan(experiment, store)
    assert sum(row[3] for row in rows) == 3 * 5 + 2 * 2
    assert [text for _, text, _, _ in rows] == [  # only what differs from the defaults
        "UCB1", "Uniform", "Boltzmann(eta=0.01)", "Boltzmann(eta=2.0)", "the best of 2",
    ]  # fmt: skip
    run_experiment(experiment, store)
    assert sum(row[3] for row in plan(experiment, store)) == 0


def test_an_unfinished_experiment_is_drawn_as_far_as_it_is(store):
    experiment = small()
    run_experiment(experiment, store)
    store.remove([key_of(experiment.cells(experiment.lines[0], experiment.lines[0].candidates[0])[0])])
    outcome = collect(experiment, store)
    assert outcome.missing == 1
    assert len(outcome.get("UCB1").replications) == 2


def test_a_panel_names_its_lines_from_the_top_down_and_those_above_it(store):
    baseline = line("coin", "Uniform", group="baseline")
    experiment = small(lines=(line("UCB1", "UCB1"), line("again", "UCB1"), baseline), length=2000)
    run_experiment(experiment, store)
    figure = paper_figure(collect(experiment, store))
    figure.canvas.draw()
    (axes,) = figure.axes
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[0] == "coin \u2191"  # far above the others, which are what matters
    assert set(names[1:]) == {"UCB1", "again (the same as UCB1)"}
    assert [drawn.get_label() for drawn in axes.lines] == ["UCB1", "again (the same as UCB1)", "coin \u2191"]
    assert all(figure.bbox.contains(*corner) for corner in figure.legends[0].get_window_extent().corners())
    assert axes.bbox.width > 0.7 * figure.bbox.width


# -- the registry and the command line ----------------------------------------------------------------------------


def test_the_fourteen_panels_are_there_and_have_a_quick_version_of_each_kind():
    names = list(known_experiments())
    full = [name for name in names if not name.endswith("-quick")]
    assert len(full) == 14
    assert sum(name.startswith("boosting") for name in full) == 10
    assert len(names) - len(full) == 6


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        sys.exit(main([str(argument) for argument in arguments]))
    return int(stop.value.code or 0)


def test_the_command_line_runs_lists_exports_and_prunes(file, tmp_path, capsys):
    import pandas

    there = ["--results", tmp_path / "r"]
    assert command("run", file, "--dry-run", *there) == 0
    assert "19 cells to compute" in capsys.readouterr().out
    assert command("run", file, *there) == 0
    assert "holds           two-arms-v1: UCB1 beats a coin -- " in capsys.readouterr().out
    assert {path.suffix for path in (tmp_path / "r" / "figures").iterdir()} == {".png", ".svg", ".pdf"}
    assert command("results", *there) == 0
    assert "19 cells in" in capsys.readouterr().out
    for name in ("x.csv", "x.parquet"):
        assert command("results", *there, "export", tmp_path / name) == 0
    frames = pandas.read_csv(tmp_path / "x.csv"), pandas.read_parquet(tmp_path / "x.parquet")
    assert len(frames[0]) == len(frames[1]) == 19 * 10
    np.testing.assert_allclose(frames[0]["regret"], frames[1]["regret"])
    assert command("results", *there, "prune", "two-arms-v1", "--yes") == 0
    assert "removed 19 cells, 0 are left" in capsys.readouterr().out


def test_reproduce_prints_a_line_a_claim_and_the_path_of_the_report(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "abex.lab.experiments.known_experiments", lambda: {"two-quick": lambda: read_experiment(file)}
    )
    assert command("reproduce", "--quick", "--results", tmp_path / "r") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == [
        "holds           two-arms-v1: UCB1 beats a coin",
        "1 claims, corrected across all of them (Holm): 1 hold, 0 do not hold, 0 cannot be told",
    ]
    assert lines[-1].startswith(f"report: {tmp_path / 'r' / 'report.html'} (")
    assert all(len(line) <= 160 for line in lines[:-1])
    assert not any("95 % interval" in line for line in lines)


def test_the_command_line_speaks_json(file, tmp_path, capsys):
    assert command("run", file, "--json", "--results", tmp_path / "r") == 0
    events = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert events[-1]["answer"] == HOLDS
    assert events[-5]["computed"] == events[-5]["cells"] == 15
    assert [event["line"] for event in events[-4:-1]] == ["UCB1", "coin", "tuned"]
    assert events[-4]["low"] < events[-4]["mean"] < events[-4]["high"]
    assert events[-3]["locked"] >= 0.6  # a coin learns nothing


@each(
    ("arguments", "message"),
    [
        (["run", "no-such-file.toml"], "no-such-file.toml"),
        (["run", "facebook-comparisons"], "did you mean 'facebook-comparison'"),
        (["results", "list"], "there are no results in"),
        (["report"], "there are no results in"),
        (["reproduce", "--only", "nothing"], "no experiment's name contains 'nothing'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence_and_exit_code_2(
    arguments, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("ABEX_RESULTS", str(tmp_path / "none"))
    assert command(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_killed_run_goes_on_where_it_stopped(file, tmp_path):
    file.write_text(FILE.replace("seeds = 5", "seeds = 400").replace("3e2", "20000"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [
        sys.executable,
        "-m",
        "abex.cli",
        "run",
        str(file),
        "--results",
        str(tmp_path / "r"),
    ]
    process = subprocess.Popen(arguments, env=environment)
    path = tmp_path / "r" / "cells.sqlite"
    before = 0
    while process.poll() is None and before < 20:
        if path.exists():
            with Store(path) as store:
                before = len(store)
    process.kill()
    process.wait()
    with Store(path) as store:
        before = len(store)
        states = run_experiment(read_experiment(file), store)
        assert sum(state.stored for state in states) == before >= 20
        assert sum(state.total for state in states) == len(store)


def test_the_report_is_written_from_the_store_alone(file, tmp_path):
    there = ["--results", tmp_path / "r"]
    assert command("run", file, *there) == 0
    Path(file).unlink()
    assert command("report", *there) == 0
    page = (tmp_path / "r" / "report.html").read_text()
    assert "UCB1 beats a coin" in page
    assert "abex run mine.toml" in page


@pytest.mark.parametrize("name", [name for name in known_experiments() if name.endswith("-quick")])
def test_every_panel_has_a_tuned_rival_baselines_and_deviations_that_name_their_place(name):
    experiment = known_experiments()[name]()
    places = ("Section", "Supplement", "Algorithm", "Theorem", "Figure")
    assert all(text.startswith(places) for text in experiment.deviations)
    if "comparison" in name:
        labels = {one.label for one in experiment.lines}
        assert {"ABE", "BGE", "BGE, authors' code", "uniform", "ABE, tuned"} <= labels
        assert len({claim.text for claim in experiment.claims}) == len(experiment.claims) >= 3
