"""What is claimed and what is found: every rule on losses made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from abex.lab.experiments import Claim, Experiment, Line
from abex.lab.experiments.outcomes import (
    ExperimentResult,
    LineResult,
    compared,
    paired_curve,
    ratio_curve,
    target_losses,
    targets_of,
)
from abex.lab.experiments.verdicts import FAILS, HOLDS, OPEN, SAME, judge, judge_all
from abex.support.intervals import Strata, mean_of
from tests.each import each


def experiment_of(drawn: Sequence[LineResult], claim: Claim) -> Experiment:
    lines = tuple(one.line for one in drawn)
    return Experiment(name="small", title="Small", problem={}, lines=lines, length=200, claims=(claim,))


def outcome_of(finals: dict[str, list[float]], claim: Claim, numbers=None) -> ExperimentResult:
    drawn = tuple(
        LineResult(Line(label, (label,)), label, tuple(range(len(v))), np.ones(1), np.array(v)[:, None], np.ones((len(v), 1)),
              np.ones((len(v), 1)), numbers or {})
        for label, v in finals.items()
    )  # fmt: skip
    return ExperimentResult(experiment_of(drawn, claim), drawn, 0)


NOISE = [0.0, 1.0, -1.0, 0.5, -0.5]


@each(
    ("rule", "shift", "margin", "answer"),
    [
        ("better", -5.0, 0.0, HOLDS),
        ("better", 5.0, 0.0, FAILS),
        ("better", 0.0, 0.0, OPEN),
        ("better", 0.0, 3.0, FAILS),  # no advantage that matters
        ("as good", 0.0, 3.0, HOLDS),
        ("as good", 5.0, 3.0, FAILS),
        ("as good", 0.0, 0.1, OPEN),
        ("best", -5.0, 0.0, HOLDS),
        ("best", 5.0, 0.0, FAILS),
        ("best", 0.0, 0.0, OPEN),
        ("best", None, 0.0, HOLDS),  # the same in every run: the same algorithm
        ("flat", 0.0, 3.0, HOLDS),
        ("flat", 5.0, 3.0, FAILS),
        ("flat", 0.0, 0.1, OPEN),
    ],
)
def test_verdicts_follow_their_rule(rule, shift, margin, answer):
    first = [10.0] * 5 if shift is None else [10.0 + shift + noise for noise in NOISE]
    claim = Claim("a claim", rule, "A", ("B",), margin)
    assert judge(outcome_of({"A": first, "B": [10.0] * 5}, claim))[0].answer == answer


def test_one_comparison_that_fails_decides():
    claim = Claim("A beats all", "better", "A", ("B", "C"))
    finals = {"A": [1.0, 1.1, 0.9, 1.0, 1.0], "B": [5.0] * 5, "C": [0.1] * 5}
    assert judge(outcome_of(finals, claim))[0].answer == FAILS


def test_a_claim_against_many_equal_lines_is_rarely_refuted_by_luck():
    """Each of 200 claims compares one line with ten of the same law; 95 % confidence holds for all ten together."""
    rng = np.random.default_rng(3)
    labels = [f"B{i}" for i in range(10)]
    claim = Claim("A is best", "best", "A", tuple(labels))
    refuted = 0
    for _ in range(200):
        finals = {label: rng.normal(size=10).tolist() for label in ("A", *labels)}
        refuted += judge(outcome_of(finals, claim))[0].answer == FAILS
    assert refuted <= 200 * 0.05 + 4 * np.sqrt(200 * 0.05 * 0.95)


def curves_of(
    losses: dict[str, list[list[float]]], seconds: dict[str, float], claim: Claim
) -> ExperimentResult:
    """Lines with checkpoints 1, 2, ... and so many seconds for each of them."""
    drawn = []
    for label, rows in losses.items():
        loss = np.array(rows)
        steps = np.arange(1.0, loss.shape[1] + 1.0)
        work = np.tile(steps, (len(rows), 1))
        runs = tuple(range(len(rows)))
        drawn.append(LineResult(Line(label, (label,)), label, runs, steps, loss, work * seconds[label], work))
    return ExperimentResult(experiment_of(drawn, claim), tuple(drawn), 0)


def test_a_claim_about_the_start_looks_at_its_step_and_not_at_the_end():
    rows = {"A": [[9.0, 1.0, 9.0], [9.0, 1.1, 9.0]] * 3, "B": [[2.0, 5.0, 2.0]] * 6}
    seconds = {"A": 1.0, "B": 1.0}
    early = judge(curves_of(rows, seconds, Claim("A is better early", "better", "A", ("B",), at=2)))[0]
    assert early.answer == HOLDS
    assert "at 2" in early.measured
    assert judge(curves_of(rows, seconds, Claim("A ends better", "better", "A", ("B",))))[0].answer == FAILS


def test_a_line_that_has_ended_before_the_step_proves_nothing():
    rows = {"A": [[1.0]] * 6, "B": [[2.0, 2.0, 2.0]] * 6}
    claim = Claim("A is better at 3", "better", "A", ("B",), at=3)
    assert judge(curves_of(rows, {"A": 1.0, "B": 1.0}, claim))[0].answer == OPEN


@each(("a_seconds", "a_end", "answer"), [(0.1, 1.0, HOLDS), (30.0, 1.0, FAILS), (0.1, 4.0, FAILS)])
def test_sooner_compares_the_cpu_time_to_the_others_loss_of(a_seconds, a_end, answer):
    """B ends at 2; A gets below at its second checkpoint, or never."""
    rows = {"A": [[9.0, a_end]] * 5, "B": [[8.0, 5.0, 2.0]]}
    outcome = curves_of(rows, {"A": a_seconds, "B": 1.0}, Claim("A is sooner", "sooner", "A", ("B",), 0.5))
    outcome.lines[0].seconds[:] *= np.array([[1.0], [1.1], [0.9], [1.05], [0.95]])  # clocks are never equal
    assert judge(outcome)[0].answer == answer


def test_sooner_is_a_curve_over_targets_and_one_of_them_can_refute_it():
    """A is quick to 5 and slow to 2: no single target tells."""
    rows = {"A": [[5.0] * 9 + [2.0]] * 6, "B": [[8.0, 5.0, 2.0]]}
    outcome = curves_of(rows, {"A": 0.5, "B": 1.0}, Claim("A is sooner", "sooner", "A", ("B",)))
    outcome.lines[0].seconds[:] *= np.linspace(0.95, 1.05, 6)[:, None]
    curve = ratio_curve(*outcome.lines)
    targets = [target for target, *_ in curve]
    np.testing.assert_allclose(targets, targets_of(outcome.lines[1]))
    assert targets[-1] == pytest.approx(2.0)
    ratios = {round(target, 2): float(np.exp(found.mean)) for target, found, _, _ in curve}
    assert min(ratios.values()) < 0.3
    assert ratios[2.0] == pytest.approx(5.0 / 3.0, rel=0.01)
    assert judge(outcome)[0].answer == FAILS


def test_a_run_that_misses_a_target_leaves_it_open_and_half_of_them_refute_it():
    for missing, answer in ((1, OPEN), (3, FAILS)):
        rows = {"A": [[9.0, 1.0]] * (6 - missing) + [[9.0, 4.0]] * missing, "B": [[8.0, 5.0, 2.0]]}
        outcome = curves_of(rows, {"A": 0.1, "B": 1.0}, Claim("A is sooner", "sooner", "A", ("B",)))
        outcome.lines[0].seconds[:] *= np.linspace(0.95, 1.05, 6)[:, None]
        assert judge(outcome)[0].answer == answer


def test_exploration_is_judged_by_the_slots_really_used():
    claim = Claim("A explores", "explores", "A")
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim, {"exploration_slots": [0.0, 0.0]}))[0].answer == FAILS
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim, {"exploration_slots": [0.0, 5.0]}))[0].answer == HOLDS
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim))[0].answer == OPEN


@pytest.mark.parametrize("runs", [1, 4])
def test_fewer_than_five_runs_prove_nothing(runs):
    claim = Claim("A beats B", "better", "A", ("B",))
    outcome = outcome_of({"A": [1.0, 1.1, 1.2, 1.0][:runs], "B": [9.0] * runs}, claim)
    assert judge(outcome)[0].answer == OPEN
    assert np.isnan(outcome.lines[0].estimate().interval()).all()


def drawn_of(label: str, finals: list[float], played: str = "", **more) -> LineResult:
    values = np.array(finals)[:, None]
    ones = np.ones_like(values)
    runs = tuple(range(len(finals)))
    return LineResult(
        Line(label, (label,)), label, runs, np.ones(1), values, ones, ones, played=played, **more
    )


def test_the_loss_between_checkpoints_lies_on_the_line_between_them():
    loss, steps = np.array([[1.0, 3.0, 9.0], [0.0, 8.0, 4.0]]), np.array([10.0, 20.0, 40.0])
    line = LineResult(Line("A", ("A",)), "A", (0, 1), steps, loss, np.ones_like(loss), np.ones_like(loss))
    assert line.loss_at(10.0).tolist() == line.loss_at(1.0).tolist() == [1.0, 0.0]
    assert line.loss_at(12.5).tolist() == [1.5, 2.0]
    assert line.loss_at(35.0).tolist() == [7.5, 5.0]
    assert line.loss_at(40.0).tolist() == [9.0, 4.0]
    assert np.isnan(line.loss_at(41.0)).all()


@each(("rule", "answer"), [("better", FAILS), ("best", HOLDS), ("flat", HOLDS), ("as good", HOLDS)])
def test_lines_that_are_one_algorithm_are_not_told_apart_by_noise(rule, answer):
    """Their runs differ by ten standard errors; they still are the same."""
    drawn = (drawn_of("A", [1.0, 1.1, 0.9, 1.0, 1.05], "Boltzmann"), drawn_of("B", [5.0] * 5, "Boltzmann"))
    verdict = judge(ExperimentResult(experiment_of(drawn, Claim("a claim", rule, "A", ("B",))), drawn, 0))[0]
    assert (verdict.answer, verdict.p) == (answer, None)
    assert SAME in verdict.measured


def test_the_best_of_several_names_is_judged_against_the_other_algorithms():
    drawn = (
        drawn_of("A", [1.0, 1.1, 0.9, 1.0, 1.05], "Boltzmann"),
        drawn_of("B", [1.2, 1.0, 1.1, 0.9, 1.0], "Boltzmann"),
        drawn_of("C", [5.0, 5.1, 5.2, 5.0, 4.9], "ABE"),
    )
    assert (
        judge(ExperimentResult(experiment_of(drawn, Claim("A is best", "best", "A", ("B", "C"))), drawn, 0))[
            0
        ].answer
        == HOLDS
    )


def test_a_line_that_is_another_policy_here_does_not_explore():
    drawn = (drawn_of("A", [1.0] * 5, "Boltzmann(eta=0.5, schedule='sqrt', initial=0.0)"),)
    verdict = judge(ExperimentResult(experiment_of(drawn, Claim("A explores", "explores", "A")), drawn, 0))[0]
    assert verdict.answer == FAILS
    assert verdict.measured.endswith(" as Boltzmann(eta=0.5)")  # only what differs from the defaults


def test_many_claims_are_corrected_together():
    """Forty claims about lines of one law: by themselves two are wrong on average, together hardly ever one."""
    rng = np.random.default_rng(11)
    claim = Claim("A is best", "best", "A", ("B",))
    alone = together = 0
    for _ in range(20):
        outcomes = [outcome_of({"A": rng.normal(size=9).tolist(), "B": [0.0] * 9}, claim) for _ in range(40)]
        verdicts = [verdict for found in judge_all(outcomes) for verdict in found]
        alone += sum(verdict.answer != OPEN for verdict in verdicts)
        together += sum(verdict.overall != OPEN for verdict in verdicts)
    assert alone >= 15
    assert together <= 4
    clear = outcome_of({"A": [-9.0, -9.1, -9.2, -9.0, -8.9], "B": [0.0] * 5}, claim)
    assert judge_all([clear, *outcomes])[0][0].overall == HOLDS


def test_boosting_is_judged_over_test_rows_and_seeds():
    """All seeds agree on 60 rows: the seeds are sure of a difference that the rows do not support."""
    rng = np.random.default_rng(12)
    hard = (rng.random(60) < 0.2) * 100.0
    other = (rng.random(60) < 0.25) * 100.0
    rows = [np.tile(one, (8, 1)) + rng.normal(size=(8, 60)) * 0.01 for one in (hard, other)]
    drawn = tuple(
        drawn_of(label, table.mean(axis=1).tolist(), rows={1: table})
        for label, table in zip("AB", rows, strict=True)
    )
    assert mean_of(drawn[0].final - drawn[1].final).p_above(-100) < 0.05
    seeds = mean_of(drawn[0].final - drawn[1].final)
    both = compared(*drawn)
    assert both.mean == pytest.approx(seeds.mean)
    assert both.error > 100 * seeds.error
    claim = Claim("A is better", "better", "A", ("B",))
    assert judge(ExperimentResult(experiment_of(drawn, claim), drawn, 0))[0].answer == OPEN


def test_strata_weigh_in_means_quantiles_locked_runs_and_verdicts():
    strata = Strata(np.repeat([0, 1], 10), np.array([0.95, 0.05]))
    values = np.concatenate([np.linspace(90.0, 110.0, 10), np.full(10, 1_000.0)])
    loss = np.stack([values * np.repeat([0.9, 0.5], 10), values], axis=1)
    ones, runs = np.ones_like(loss), tuple(range(20))
    line = LineResult(Line("A", ("A",)), "A", runs, np.array([50.0, 100.0]), loss, ones, ones, strata=strata)
    assert line.mean[-1] == pytest.approx(0.95 * 100.0 + 0.05 * 1_000.0)
    assert line.linear_regret_share == pytest.approx(0.05)
    assert line.quantile(0.5) < 111.0
    assert line.quantile(0.96) == 1_000.0
    other = LineResult(Line("B", ("B",)), "B", runs, line.step, loss * 0.5, ones, ones, strata=strata)
    assert compared(line, other).mean == pytest.approx(line.mean[-1] / 2)


def test_time_to_an_error_is_its_first_checkpoint_and_infinite_where_it_is_not_reached():
    rows = {"A": [[9.0, 3.0, 4.0, 2.0], [9.0, 9.0, 9.0, 5.0]]}
    drawn = curves_of(rows, {"A": 0.5}, Claim("A explores", "explores", "A")).lines[0]
    assert drawn.seconds_to(3.0).tolist() == [1.0, np.inf]
    assert drawn.seconds_to(9.0).tolist() == [0.5, 0.5]
    assert drawn.loss_at(2.5).tolist() == [3.5, 9.0]
    assert np.isnan(drawn.loss_at(4.5)).all()


def test_the_errors_worth_reaching_come_from_the_line_that_learns_nothing():
    rows = {"A": [[9.0, 1.0]], "uniform": [[9.0, 2.0]]}
    outcome = curves_of(rows, {"A": 1.0, "uniform": 1.0}, Claim("A explores", "explores", "A"))
    assert target_losses(outcome) == ("uniform", (3.0, 2.2))
    assert target_losses(ExperimentResult(outcome.experiment, outcome.lines[:1], 0)) == ("A", (1.5, 1.1))


def test_differences_are_paired_by_replication_also_between_lines_of_different_length():
    rows = {"A": [[9.0, 1.0, 3.0], [5.0, 1.0, 1.0]] * 3, "B": [[8.0, 2.0], [4.0, 2.0]] * 3}
    a, b = curves_of(rows, {"A": 1.0, "B": 1.0}, Claim("A explores", "explores", "A")).lines
    mean, low, high = paired_curve(b, a)
    assert mean.tolist() == low.tolist() == high.tolist() == [-1.0, 1.0]
    assert paired_curve(a, b) is None  # B has ended
