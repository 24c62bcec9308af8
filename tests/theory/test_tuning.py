"""The tuner's constant, its advice, its study, and the command line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.recommendation import CONTENDERS, instances, ratios, run_study, table

from abex import ABE, Bernoulli, UserError, parse_policy, simulate
from abex.cli import main
from abex.theory import Schedule, recommend
from abex.theory.tuning import leak_constant
from tests.each import each


@each("n_arms", [2, 3, 10, 333, 10_000])
def test_the_leak_constant_is_the_integral_of_the_softmax(n_arms: int) -> None:
    x = np.linspace(0.0, 80.0, 400_001)
    probability = np.exp(-x) / (1.0 + (n_arms - 1) * np.exp(-x))
    integral = np.trapezoid(x * probability, x)  # dt = 2 x dx / (eta gap)^2
    assert leak_constant(n_arms) == pytest.approx(integral, rel=1e-6)


@pytest.mark.parametrize(("n_arms", "gap", "eta"), [(2, 0.4, 0.3), (10, 0.4, 0.3), (10, 0.2, 0.3)])
def test_boltzmann_sampling_explores_as_much_as_the_constant_says(
    n_arms: int, gap: float, eta: float
) -> None:
    expected = 2.0 * leak_constant(n_arms) / (eta * gap) ** 2
    means = [0.5 + gap / 2.0] + [0.5 - gap / 2.0] * (n_arms - 1)
    curves = simulate(
        ABE(eta=eta, c=0.0),
        Bernoulli(means),
        horizon=60_000,
        replications=60,
        seed=4,
        checkpoints=2,
        progress=False,
    )
    pulls = np.median(
        (60_000 - curves.optimal_pulls[0, :, -1]) / (n_arms - 1)
    )  # a run may lock in on a wrong arm
    assert pulls == pytest.approx(expected, rel=0.25)


def test_the_advice_spends_what_it_says() -> None:
    for n_arms, horizon, gap in ((10, 20_000, 0.25), (333, 50_000, 0.25), (2, 10**6, 0.05)):
        advice = recommend(n_arms, horizon, gap)
        need = math.log1p(2.0 * horizon * gap**2 / n_arms) / (2.0 * gap**2)
        swept = Schedule(n_arms, advice.c, advice.alpha, advice.rounding).exploration_slots(horizon) / n_arms
        assert swept == pytest.approx(need / 2.0, rel=0.15)  # the last epoch may not have begun
        assert 2.0 * leak_constant(n_arms) / (advice.eta * gap) ** 2 == pytest.approx(need / 2.0, rel=0.02)
        assert parse_policy(advice.policy) == ABE(
            eta=advice.eta, c=advice.c, alpha=advice.alpha, rounding="carry"
        )


def test_the_advice_depends_on_the_problem_in_the_right_direction() -> None:
    assert recommend(10, 20_000, 0.1).c > recommend(10, 20_000, 0.4).c
    assert recommend(100, 20_000).eta < recommend(10, 20_000).eta
    assert recommend(333, 50_000, 0.25, sweep=48).eta > recommend(333, 50_000, 0.25).eta
    small = recommend(10, 20_000, 0.00025, sigma=0.0005)  # the same problem in smaller units
    assert small.eta == pytest.approx(1000.0 * recommend(10, 20_000, 0.25).eta, rel=0.01)
    assert small.c == pytest.approx(recommend(10, 20_000, 0.25).c, rel=0.01)


def test_without_a_gap_the_sweeps_cost_no_more_than_the_minimax_order() -> None:
    for n_arms, horizon in ((2, 1000), (10, 10**5), (333, 50_000), (50, 60)):
        advice = recommend(n_arms, horizon)
        slots = Schedule(n_arms, advice.c, advice.alpha, "carry").exploration_slots(horizon)
        assert slots <= 0.5 * math.sqrt(n_arms * horizon / 2.0) * 1.02 + 1


def test_the_advice_explains_itself() -> None:
    words = str(recommend(333, 10**6, 0.25))
    for reason in ("eta=", "c=", "alpha=", "rounding='carry'", "Lai and Robbins", "proved"):
        assert reason in words
    with pytest.raises(UserError, match="gap"):
        recommend(10, 100, gap=1.5)
    with pytest.raises(UserError, match="sweep"):
        recommend(10, 100, sweep=11)


def test_the_study_finds_the_advice_better_than_the_papers_parameters() -> None:
    study = run_study((4, 12), (0.3,), horizon=8_000, replications=24, seed=1, show=False)
    assert [case.n_arms for case in study.instances] == [4, 4, 12, 12]
    ratio = ratios(study)
    assert ratio.shape == (4, len(CONTENDERS))
    geometric = dict(zip(CONTENDERS, np.exp(np.log(ratio).mean(axis=0)), strict=True))
    assert geometric["recommended, gap known"] < geometric["the paper's parameters"]
    assert geometric["recommended, gap known"] < 4.0
    text = table(study)
    assert all(name in text for name in CONTENDERS)


def test_instances_have_the_gap_they_claim() -> None:
    for case in instances((2, 3, 10), (0.05, 0.4, 0.9)):
        means = sorted(case.means, reverse=True)
        assert len(means) == case.n_arms
        assert 0.0 <= means[-1] <= means[0] <= 1.0
        assert means[0] - means[1] == pytest.approx(case.gap)


# -- the command -----------------------------------------------------------------------------------------


def test_the_command_says_plainly_that_the_papers_abe_does_not_explore(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["theory", "--c", "0.1", "--alpha", "0.7", "--arms", "333", "--gap", "0.25", "--horizon", "1e6"])
    said = capsys.readouterr().out
    assert "first happens at step 44,694,502,759 (4.5e10)" in said
    assert "it takes 0 slots" in said
    assert "plain Boltzmann exploration" in said
    assert "10^75,75" in said
    assert "the bound is empty" in said


def test_the_command_speaks_of_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (
            ["--c", "100", "--alpha", "0.1", "--arms", "4", "--gap", "0.5", "--horizon", "1e6"],
            "the bound is not empty",
        ),
        (["--c", "0.5", "--alpha", "0"], "never happens"),
        (["--c", "0.01", "--alpha", "0.1"], "step 10^(3.0e19), in outer iteration 1.0e20"),
        (["recommend", "--arms", "10", "--horizon", "2e4", "--gap", "0.25"], "ABE(eta=0.797"),
    ):
        main(["theory", *arguments])
        assert words in capsys.readouterr().out


@each(
    ("arguments", "named"),
    [(["--arms", "1.5"], "arms"), (["--gap", "0"], "gap"),
     (["--horizon", "0"], "horizon"), (["--eta", "0"], "eta")],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["theory", *arguments])
    assert stop.value.code == 2
    error = capsys.readouterr().err.strip()
    assert named in error
    assert "\n" not in error
