"""What is claimed and what is found: every rule on losses made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from abex.experiments import Claim, Experiment, Line
from abex.experiments.outcomes import Drawn, Outcome, goals, interval, paired_curve
from abex.experiments.verdicts import FAILS, HOLDS, OPEN, judge


def experiment_of(drawn: Sequence[Drawn], claim: Claim) -> Experiment:
    lines = tuple(one.line for one in drawn)
    return Experiment(name="small", title="Small", problem={}, lines=lines, length=200, claims=(claim,))


def outcome_of(finals: dict[str, list[float]], claim: Claim, numbers=None) -> Outcome:
    drawn = tuple(
        Drawn(Line(label, (label,)), label, tuple(range(len(v))), np.ones(1), np.array(v)[:, None], np.ones((len(v), 1)),
              np.ones((len(v), 1)), numbers or {})
        for label, v in finals.items()
    )  # fmt: skip
    return Outcome(experiment_of(drawn, claim), drawn, 0)


NOISE = [0.0, 1.0, -1.0, 0.5, -0.5]


@pytest.mark.parametrize(
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
    finals = {"A": [1.0, 1.1, 0.9], "B": [5.0, 5.0, 5.0], "C": [0.1, 0.1, 0.1]}
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


def curves_of(losses: dict[str, list[list[float]]], seconds: dict[str, float], claim: Claim) -> Outcome:
    """Lines with checkpoints 1, 2, ... and so many seconds for each of them."""
    drawn = []
    for label, rows in losses.items():
        loss = np.array(rows)
        steps = np.arange(1.0, loss.shape[1] + 1.0)
        work = np.tile(steps, (len(rows), 1))
        runs = tuple(range(len(rows)))
        drawn.append(Drawn(Line(label, (label,)), label, runs, steps, loss, work * seconds[label], work))
    return Outcome(experiment_of(drawn, claim), tuple(drawn), 0)


def test_a_claim_about_the_start_looks_at_its_step_and_not_at_the_end():
    rows = {"A": [[9.0, 1.0, 9.0], [9.0, 1.1, 9.0]], "B": [[2.0, 5.0, 2.0], [2.0, 5.0, 2.0]]}
    seconds = {"A": 1.0, "B": 1.0}
    early = judge(curves_of(rows, seconds, Claim("A is better early", "better", "A", ("B",), at=2)))[0]
    assert early.answer == HOLDS
    assert "at 2" in early.measured
    assert judge(curves_of(rows, seconds, Claim("A ends better", "better", "A", ("B",))))[0].answer == FAILS


def test_a_line_that_has_ended_before_the_step_proves_nothing():
    rows = {"A": [[1.0], [1.0]], "B": [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]}
    claim = Claim("A is better at 3", "better", "A", ("B",), at=3)
    assert judge(curves_of(rows, {"A": 1.0, "B": 1.0}, claim))[0].answer == OPEN


@pytest.mark.parametrize(
    ("a_seconds", "a_end", "answer"), [(0.1, 1.0, HOLDS), (30.0, 1.0, FAILS), (0.1, 4.0, FAILS)]
)
def test_sooner_compares_the_cpu_time_to_the_others_loss_of(a_seconds, a_end, answer):
    """B ends at 2; A gets below at its second checkpoint, or never."""
    rows = {"A": [[9.0, a_end], [9.0, a_end], [9.0, a_end]], "B": [[8.0, 5.0, 2.0]]}
    outcome = curves_of(rows, {"A": a_seconds, "B": 1.0}, Claim("A is sooner", "sooner", "A", ("B",), 0.5))
    outcome.lines[0].seconds[:] *= np.array([[1.0], [1.1], [0.9]])  # clocks are never equal
    assert judge(outcome)[0].answer == answer


def test_exploration_is_judged_by_the_slots_really_used():
    claim = Claim("A explores", "explores", "A")
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim, {"exploration_slots": [0.0, 0.0]}))[0].answer == FAILS
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim, {"exploration_slots": [0.0, 5.0]}))[0].answer == HOLDS
    assert judge(outcome_of({"A": [1.0, 2.0]}, claim))[0].answer == OPEN


def test_a_single_run_proves_nothing():
    claim = Claim("A beats B", "better", "A", ("B",))
    assert judge(outcome_of({"A": [1.0], "B": [9.0]}, claim))[0].answer == OPEN


def test_the_interval_is_students():
    from scipy import stats

    values = np.random.default_rng(1).normal(size=(12, 3))
    low, high = interval(values)
    expected = stats.t.interval(0.95, 11, loc=values.mean(axis=0), scale=stats.sem(values))
    np.testing.assert_allclose([low, high], expected)


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
    assert goals(outcome) == ("uniform", (3.0, 2.2))
    assert goals(Outcome(outcome.experiment, outcome.lines[:1], 0)) == ("A", (1.5, 1.1))


def test_differences_are_paired_by_replication_also_between_lines_of_different_length():
    rows = {"A": [[9.0, 1.0, 3.0], [5.0, 1.0, 1.0]], "B": [[8.0, 2.0], [4.0, 2.0]]}
    a, b = curves_of(rows, {"A": 1.0, "B": 1.0}, Claim("A explores", "explores", "A")).lines
    mean, low, high = paired_curve(b, a)
    assert mean.tolist() == low.tolist() == high.tolist() == [-1.0, 1.0]
    assert paired_curve(a, b) is None  # B has ended
