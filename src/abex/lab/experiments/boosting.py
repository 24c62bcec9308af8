"""Bandit-based boosting (paper, Section 4 and supplement): five data sets, two panels each."""

from __future__ import annotations

from functools import partial
from typing import Any

from abex.lab.datasets import load
from abex.lab.experiments.experiment import Claim, Experiment, Line, equivalent_policies, line, register
from abex.lab.sweeps.boosting_cells import FULL_SEARCH
from abex.lab.sweeps.problems import with_checksums

VERSION = 2
#: data set -> (figures of the paper, iterations, the paper's best (c, alpha), most iterations of full search)
SETS: dict[str, tuple[str, str, int, tuple[float, float], int]] = {
    "mnist": ("Figure 1a", "Figure 2a", 30_000, (0.2, 0.5), 30_000),
    "usps": ("Figure 1b", "Figure 2b", 50_000, (0.1, 0.7), 50_000),
    "isolet": ("Figure 1c", "Figure 2c", 50_000, (0.2, 0.5), 50_000),
    "pendigits": ("Figure 5a", "Figure 6a", 50_000, (0.1, 0.7), 50_000),
    "letter": ("Figure 5b", "Figure 6b", 50_000, (0.1, 0.7), 50_000),
}
GRID = ((0.1, 0.7), (0.2, 0.5), (0.2, 0.7), (0.3, 0.5), (1.0, 0.5), (2.0, 0.4), (3.0, 0.3))
MARGIN = 0.25  # percentage points: what another seed changes, see the spread in the paper's own code
EARLY = 2_000  # iterations: where a bandit can still help; at the end all features have been used many times
DEVIATIONS = (
    "Section 4: eta is not given; 0.4 stands in the authors' code, and 'ABE, tuned' chooses it on validation data.",
    "Section 4: the paper chose (c, alpha) on the test set; we draw its choice and choose ours on a fifth of the training set.",
    "Section 4: one run and wall-clock time there, 20 seeds and CPU time here; the time to code the features is included. "
    "Intervals are over seeds and test rows alike.",
    "Section 4: how long full search ran is not stated; here until its error on validation rows falls by less than 1 % "
    "or four rows more, however long it goes on (at least as long again), or to the limit that the table shows.",
    "Section 4: BGE's formula C sqrt(Z/N) is a misprint for C Z/sqrt(N), with noise of its own for every arm; the authors' code, "
    "which shares one draw among all arms, is drawn beside it.",
    "Section 4: EXP3.P is the textbook version with the parameters of Busa-Fekete and Kegl; the authors used MultiBoost's "
    "variant, which is drawn beside it. Its look at all features before the first iteration is free there; here it takes one "
    "iteration and one weak learner each, like every other. 'EXP3.P, tuned' chooses its parameters on validation data.",
    "Section 4: the paper shifts each curve left by the time of its initialisation; here all of training counts.",
    "Section 4, Table 1: a feature that never varies in the training set is no arm (67 of MNIST's 784 pixels); in the authors' "
    "code it is, and its iteration changes nothing.",
    "Section 4: the number of iterations and the pairs (c, alpha) of Figures 2 and 6 are not stated; they stand in the authors' "
    "scripts.",
    "Algorithm 1: 'j mod K' would name an arm 0 that does not exist; arms are counted from 0 here. Its sweep goes by the "
    "numbers of the arms; ours has a random order unless order='index' is asked for.",
    "Supplement: the reward is -log sqrt(1 - gamma^2), as in Busa-Fekete and Kegl and in the code, not -log sqrt(1 - gamma); "
    "stumps vote +1 and -1, not 1 and 0.",
)


#: what a data set adds to them
MORE_DEVIATIONS = {
    "usps": (
        "Figure 1b: stumps end near 6 % in the literature; on the public files no choice of features does, "
        "and neither does MultiBoost itself (8.7 %).",
    ),
}


def comparison_lines(best: tuple[float, float], search: int, early: int, quick: bool) -> tuple[Line, ...]:
    """The paper's three algorithms, its authors' variants, the baselines it left out, and tuned ones.

    Tuned means: chosen by the error on validation rows at the end, or, for the line of the start, at iteration ``early``.
    """
    c, alpha = best
    abe = [f"ABE(eta={eta}, c={c}, alpha={alpha})" for eta in (0.4, 2.0, 10.0, 50.0)]
    exp3 = [f"Exp3P(gamma={gamma}, alpha={bonus})" for gamma, bonus in ((0.15, 0.3), (0.3, 0.1), (0.6, 0.05))]
    lines = [
        line("ABE", abe[0], group="paper"),
        line("EXP3.P", exp3[0], group="paper"),
        line("BGE", "BoltzmannGumbel(scale=0.25)", group="paper"),
        line("EXP3.P, authors' code", "Exp3PMultiBoost", group="authors"),
        line("BGE, authors' code", "BoltzmannGumbel(scale=0.25, shared_noise=True)", group="authors"),
        line("uniform", "Uniform", group="baseline"),
        line("Boltzmann", "Boltzmann(eta=0.4)", group="baseline"),
        line(FULL_SEARCH, FULL_SEARCH, group="baseline", length=search, seeds=1, plateau=True),
        line("ABE, tuned", *abe),
        line("ABE, tuned for the start", *abe, length=5 * early, tuned_at=early),
        line("EXP3.P, tuned", *exp3),
        line("BGE, tuned", *(f"BoltzmannGumbel(scale={scale})" for scale in (0.25, 0.025, 0.0025))),
    ]
    dear = ("Boltzmann", "BGE, tuned", "EXP3.P, authors' code", FULL_SEARCH)  # to compile, or to play
    return tuple(one for one in lines if not quick or one.label not in dear)


def comparison(data: str, quick: bool = False) -> Experiment:
    """Figures 1 and 5: ABE, EXP3.P and BGE against time."""
    figure, _, length, best, search = SETS.get(data, ("", "", 2_000, (0.1, 0.7), 300))
    early = EARLY // 10 if quick else EARLY
    lines = comparison_lines(best, search, early, quick)
    labels = [one.label for one in lines]
    others = tuple(label for label in labels if label.startswith(("EXP3.P", "BGE")) and "tuned" not in label)
    tuned = tuple(label for label in ("EXP3.P, tuned", "BGE, tuned") if label in labels)
    chance = ("uniform",)
    claims = [
        Claim("ABE performs as well as or better than EXP3.P and BGE", "as good", "ABE", others, MARGIN, "Section 4"),
        Claim("With all of them tuned on validation data, ABE performs as well as or better than EXP3.P and BGE", "as good",
              "ABE, tuned", tuned, MARGIN, "ours; Section 4 tunes ABE alone"),
        Claim("ABE gains from choosing features: it is better than choosing at random", "better", "ABE", chance, MARGIN,
              "implied in Section 4; the baseline is ours"),
        Claim("ABE with a tuned rate ends better than choosing at random", "better", "ABE, tuned", chance, MARGIN, "ours"),
        Claim(f"After {early:,} iterations ABE is better than choosing at random", "better", "ABE", chance, MARGIN, "ours",
              early),
        Claim(f"After {early:,} iterations ABE with a rate tuned for the start is better than choosing at random", "better",
              "ABE, tuned for the start", chance, MARGIN, "ours", early),
        Claim("A small amount of pure exploration is what ABE adds to Boltzmann exploration", "explores", "ABE",
              where="Sections 1 and 6"),
    ]  # fmt: skip
    if FULL_SEARCH in labels:
        text = "Trying the one feature that a bandit names speeds AdaBoost.MH up against full search"
        where = "Section 4, after Busa-Fekete and Kegl"
        claims.append(Claim(text, "sooner", "ABE", (FULL_SEARCH,), MARGIN, where))
    return _experiment(
        data,
        f"boosting-{data}-comparison",
        f"Boosting on {data}: policies",
        figure,
        lines,
        tuple(claims),
        length,
        quick,
    )


def varying(data: str, quick: bool = False) -> Experiment:
    """Figures 2 and 6: ABE with several (c, alpha)."""
    _, figure, length, best, _ = SETS.get(data, ("", "", 2_000, (0.1, 0.7), 300))
    grid = GRID if not quick else (GRID[0], GRID[1], GRID[4], GRID[6])
    lines = tuple(line(f"({c:g}, {a:g})", f"ABE(eta=0.4, c={c}, alpha={a})", group="paper") for c, a in grid)
    chosen = f"({best[0]:g}, {best[1]:g})"
    others = tuple(one.label for one in lines if one.label != chosen)
    claims = (
        Claim(f"(c, alpha) = {chosen} performs best", "best", chosen, others, 0.0, "Section 4"),
        Claim("The choice of (c, alpha) matters", "better", chosen, others[-1:], MARGIN, "Section 4"),
        Claim("(0.1, 0.7) and (0.2, 0.5) are one algorithm at this length", "flat", "(0.1, 0.7)", ("(0.2, 0.5)",), 1e-9,
              "ours: floor(c i^alpha) = 0 until outer iterations 27 and 25"),
    )  # fmt: skip
    return _experiment(
        data,
        f"boosting-{data}-varying",
        f"Boosting on {data}: ABE's (c, alpha)",
        figure,
        lines,
        claims,
        length,
        quick,
    )


def _experiment(
    data: str, name: str, title: str, figure: str, lines: tuple[Line, ...], claims: tuple[Claim, ...],
    length: int, quick: bool,
) -> Experiment:  # fmt: skip
    problem: dict[str, Any] = with_checksums({"data": data, "part": "test"})
    full = name if not quick else f"{name.replace(f'-{data}', '')}-quick"
    return Experiment(
        name=full, title=title, kind="boosting", problem=problem, validation={**problem, "part": "validation"},
        lines=lines, length=length, seeds=60 if quick else 20, validation_seeds=2 if quick else 3, version=VERSION,
        equivalent=equivalent_policies(lines, arms_of(data), length), rows_at=(EARLY // 10 if quick else EARLY,),
        claims=claims, figure=figure, deviations=DEVIATIONS + MORE_DEVIATIONS.get(data, ()), command=f"abex run {full}",
    )  # fmt: skip


def arms_of(data: str) -> int:
    """Features that vary in the training set: the arms."""
    X = load(data).X_train
    return int((X[0] != X).any(axis=0).sum())


for _data in SETS:
    register(f"boosting-{_data}-comparison")(partial(comparison, _data))
    register(f"boosting-{_data}-varying")(partial(varying, _data))
register("boosting-comparison-quick")(partial(comparison, "digits", quick=True))
register("boosting-varying-quick")(partial(varying, "digits", quick=True))
