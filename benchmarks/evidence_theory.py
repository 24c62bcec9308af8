"""How `Evidence` compares with what is possible: the slope of its regret, and hard instances.

    python benchmarks/evidence_theory.py                        both tables, a few minutes
    python benchmarks/evidence_theory.py --slopes 1e7 --runs 8  only the slopes of Evidence, to so many steps
    python benchmarks/evidence_theory.py --hard --runs 600      only the hard instances
    python benchmarks/evidence_theory.py --alarms 3e3 --runs 10000   changes found where nothing changes
    python benchmarks/evidence_theory.py --forced 24            the slope after an alarm that was forced, so many runs
    python benchmarks/evidence_theory.py --bound                what Theorem 6 says at horizons of this world
    python benchmarks/evidence_theory.py --long 1e9             one run of so many steps: does anything drift?

*Slope*: between T/10 and T the regret of an asymptotically optimal policy grows by C ln 10, C the constant of Lai and
Robbins; on a graph no policy grows by less than the value of a linear program (Wu, György and Szepesvári 2015). The
table has what is measured over that. *Hard instances*: one arm better than K - 1 others by sqrt(K / T), where the
regret of every policy is of the order sqrt(K T).
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from abex import MOSS, Bernoulli, Evidence, Graph, KLUCBPlusPlus, SpecialArm, Thompson, simulate
from abex.graphs import cliques, star
from abex.graphs.feedback import BanditFeedback, reveal_bandit
from abex.graphs.numbers import regret_lower_bound
from abex.policies.kept_order import begin_era
from abex.policies.policy import Setting
from abex.samplers import sampler_for
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.loop import Run, compiled_loop
from abex.support.randomness import counter_key, stream
from abex.theory import lai_robbins
from abex.theory.evidence import regret_most
from many_arms import print_law

COINS = (
    [0.6, 0.5], [0.9, 0.8], [0.2, 0.1], [0.55, 0.5, 0.45], [0.8, 0.6, 0.4, 0.2], [0.3, 0.25, 0.2, 0.15, 0.1],
    [0.95, 0.9, 0.9, 0.85], [0.5] + [0.4] * 9, [round(0.1 + 0.08 * k, 2) for k in range(10)], [0.1, 0.05, 0.02, 0.01],
)  # fmt: skip
STILL = ([0.5, 0.5], [0.6, 0.5], [0.9, 0.8], [0.2, 0.1], [0.12, 0.08, 0.05], [0.5] + [0.4] * 9)
GRAPHS: tuple[tuple[str, Graph, list[float]], ...] = (
    ("star of 6, the best a leaf", star(6), [0.4, 0.7, 0.5, 0.5, 0.5, 0.5]),
    ("three cliques of 3", cliques(3, 3), [0.6, 0.5, 0.4, 0.5, 0.45, 0.4, 0.5, 0.45, 0.4]),
)


def grown(
    policy: object, means: list[float], graph: Graph | None, steps: int, runs: int
) -> tuple[float, float, float]:
    """How much the regret grows from T/10 to T for each unit of the bound, its standard error, and changes found in a run."""
    curves = simulate(
        policy, Bernoulli(means), graph=graph, horizon=steps, replications=runs, seed=1, workers=1,
        checkpoints=[steps // 10, steps], progress=False,
    )  # fmt: skip
    bound = lai_robbins(means) if graph is None else regret_lower_bound(graph, means).upper
    growth = (curves.regret[0, :, -1] - curves.regret[0, :, 0]) / (bound * math.log(10.0))
    alarms = curves.reports[0].get("changes found", [0.0])
    return float(growth.mean()), float(growth.std(ddof=1) / math.sqrt(runs)), float(np.mean(alarms))


def slopes(steps: int, runs: int) -> None:
    """The first table without its rival."""
    print(f"Growth of the regret from {steps // 10:,} to {steps:,} over the lower bound, {runs} runs")
    print("| instance | Evidence | changes found in a run |\n|---|---|---|")
    for name, graph, means in (*((str(means), None, means) for means in COINS), *GRAPHS):
        mean, error, alarms = grown(Evidence(), means, graph, steps, runs)
        print(f"| {name} | {mean:.2f} ± {error:.2f} | {alarms:.2f} |", flush=True)


def hard(runs: int) -> None:
    """The second table."""
    print(f"Regret over sqrt(K T) where one arm is better by sqrt(K / T), {runs} runs")
    print("| K | T | Evidence | anytime MOSS | KL-UCB++ | Thompson |\n|---|---|---|---|---|---|")
    for n_arms, horizon in ((2, 10_000), (10, 10_000), (10, 100_000), (100, 100_000)):
        gap = math.sqrt(n_arms / horizon)
        policies = [Evidence(), MOSS(anytime=1.35), KLUCBPlusPlus(), Thompson()]
        curves = simulate(
            policies, SpecialArm(n_arms, 0.5 + gap, 0.5), horizon=horizon, replications=runs, seed=1, workers=1,
            checkpoints=[horizon], progress=False,
        )  # fmt: skip
        scores = curves.regret[:, :, -1] / math.sqrt(n_arms * horizon)
        errors = scores.std(axis=1, ddof=1) / math.sqrt(runs)
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(scores.mean(axis=1), errors, strict=True)]
        print(f"| {n_arms} | {horizon:,} | {' | '.join(cells)} |", flush=True)


def alarms(steps: int, runs: int) -> None:
    """How many runs find a change where nothing changes."""
    print(f"Runs of {steps:,} steps, of {runs:,}, in which a change was found although nothing changes")
    print("| instance | runs | changes |\n|---|---|---|")
    for means in STILL:
        curves = simulate(
            Evidence(), Bernoulli(means), horizon=steps, replications=runs, seed=1, workers=1, checkpoints=[steps],
            progress=False,
        )  # fmt: skip
        found = np.asarray(curves.reports[0]["changes found"])
        print(f"| {means} | {np.count_nonzero(found)} | {found.sum():.0f} |", flush=True)


def growth_after(means: list[float], runs: int, forced: bool, steps: int = 10**6, alarm: int = 3_000) -> str:
    """Growth of the regret from a tenth of the steps on over the lower bound, with or without an alarm after some of them."""
    policy, world, values = Evidence(), Bernoulli(means), []
    play = compiled_loop(policy.kernels(), world.rules(), reveal_bandit)
    for seed in range(runs):
        state = policy.start(Setting(len(means)))
        run = Run(
            state=state, world=world.open(counter_key(seed, "environment"), steps), feedback=BanditFeedback(n_arms=len(means)),
            pending=None, memory=None, checkpoints=np.array([steps // 10, steps]), regret=np.zeros(2),
            optimal_pulls=np.zeros(2), seen=np.zeros(1, np.int64), rng=stream(seed, "policy"), n_arms=len(means),
        )  # fmt: skip
        with np.errstate(over="ignore"):  # words wrap around
            play(run, 1, alarm)
            if forced:
                begin_era(state.order, state, state.test, max(1, state.test.n_blocks - 6))
            play(run, alarm + 1, steps)
        values.append((run.regret[1] - run.regret[0]) / (lai_robbins(means) * math.log(10.0)))
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / math.sqrt(runs):.2f}"


def forced_alarms(runs: int) -> None:
    """What an alarm costs in the long run where nothing has changed."""
    print("| instance | without an alarm | after a forced one |\n|---|---|---|")
    for means in ([0.6, 0.5], [0.9, 0.8], [0.2, 0.1], [0.8, 0.6, 0.4, 0.2], [0.5] + [0.4] * 9):
        print(
            f"| {means} | {growth_after(means, runs, False)} | {growth_after(means, runs, True)} |",
            flush=True,
        )


def bounds() -> None:
    """Theorem 6 at its best slack, beside what anybody's regret is at most and the asymptotic lower bound."""
    print("| instance | T | Theorem 6 | T times the largest gap | C ln T |\n|---|---|---|---|---|")
    for means in ([0.8, 0.2], [0.6, 0.5], [0.9, 0.8], [0.5] + [0.4] * 9):
        best = max(means)
        smallest = min(best - mean for mean in means if mean < best)
        for horizon in (10**4, 10**6, 10**9):
            slacks = smallest * (0.5 - np.geomspace(0.001, 0.3, 16))
            least = min(regret_most(means, horizon, slack) for slack in slacks)
            most, lower = horizon * (best - min(means)), lai_robbins(means) * math.log(horizon)
            print(f"| {means} | {horizon:.0e} | {least:,.0f} | {most:,.0f} | {lower:.0f} |", flush=True)


def long_run(steps: int, n_arms: int = 10, draws: int = 400_000) -> None:
    """Very many steps among nearly equal arms: whether the record is what its own sums say, and the draws what is stated."""
    policy = Evidence(forget=False)
    environment = Bernoulli(0.5 + 1e-4 * stream(0, "long").random(n_arms))
    run = play_replication(policy, environment, None, as_checkpoints(2, steps), 1, 0)
    state, seen = run.state, run.state.observations
    print(f"Evidence, {n_arms} arms, {steps:.0e} steps: {run.nanoseconds:.0f} ns a step")
    same = np.array_equal(sampler_for("evidence", state).winners, state.sampler.winners)
    sums = seen * state.means
    squares = sums * (1.0 - state.means)
    print(f"tournament {'as played anew' if same else 'WRONG'}; observations {seen.min():.3g} to {seen.max():.3g}, "
          f"together {seen.sum():.0f}; a sum of rewards is {np.abs(sums - sums.round()).max():.1e} from a whole number, "
          f"a sum of squares {np.abs(state.squares / squares - 1.0).max():.1e} from its formula at most")  # fmt: skip
    print_law(policy, state, steps + 1, draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=float, default=1e6)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slopes", type=float, metavar="STEPS", help="instead: slopes of Evidence alone")
    parser.add_argument("--long", type=float, metavar="STEPS", help="instead: one run of so many steps")
    parser.add_argument("--hard", action="store_true", help="instead: hard instances alone")
    parser.add_argument(
        "--alarms", type=float, metavar="STEPS", help="instead: changes found where nothing changes"
    )
    parser.add_argument("--forced", type=int, metavar="RUNS", help="instead: slopes after a forced alarm")
    parser.add_argument("--bound", action="store_true", help="instead: what Theorem 6 says")
    options = parser.parse_args()
    if options.hard:
        return hard(options.runs)
    if options.alarms:
        return alarms(int(options.alarms), options.runs)
    if options.forced:
        return forced_alarms(options.forced)
    if options.bound:
        return bounds()
    if options.long:
        return long_run(int(options.long))
    if options.slopes:
        return slopes(int(options.slopes), options.runs)
    steps, runs = int(options.steps), options.runs
    print(f"Growth of the regret from {steps // 10:,} to {steps:,} over the lower bound, {runs} runs")
    print("| instance | Evidence | Thompson | changes found in a run |\n|---|---|---|---|")
    for name, graph, means in (*((str(means), None, means) for means in COINS), *GRAPHS):
        ours, rival = (grown(policy, means, graph, steps, runs) for policy in (Evidence(), Thompson()))
        shown = " | ".join(f"{mean:.2f} ± {error:.2f}" for mean, error, _ in (ours, rival))
        print(f"| {name} | {shown} | {ours[2]:.2f} |", flush=True)
    print()
    hard(5 * runs)


if __name__ == "__main__":
    main()
