"""`abex theory`: what the analysis says about given parameters, and a recommendation."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import click

from abex.cli.help import WholeNumber, examples, number_option
from abex.support.errors import real_number

RUNS = 20  # that --plot simulates


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "abex theory --c 0.1 --alpha 0.7 --arms 333 --gap 0.25 --horizon 1e6",
        "abex theory --c 8 --alpha 0.5 --arms 4 --gap 0.5 --horizon 1e5 --eta 1 --plot bound.svg",
    ),
)
@click.option("--c", type=float, default=0.1, show_default=True, help="Amount of exploration.")
@click.option("--alpha", type=float, default=0.7, show_default=True, help="Growth of exploration.")
@click.option("--eta", type=float, default=0.4, show_default=True, help="Scale of the Boltzmann rate.")
@number_option("--arms", 333, "Number of arms.", least=2)
@click.option(
    "--gap", type=float, default=0.25, show_default=True, help="Gap between the best arm and all others."
)
@number_option("--horizon", 1_000_000, "Number of steps.")
@click.option("--plot", help="Draw schedule, bounds and simulated regret (png, svg, pdf).")
@click.pass_context
def command(
    context: click.Context, c: float, alpha: float, eta: float, arms: int, gap: float, horizon: int, plot: str | None
) -> None:  # fmt: skip
    """When ABE explores, how much, and what Theorem 1 says about it, in plain words."""
    if context.invoked_subcommand is not None:
        return
    from abex import ABE
    from abex.support.figures import kind_of
    from abex.theory.explanation import explain

    real_number("--eta", eta, above=0.0)
    if plot is not None:
        kind_of(plot)
    click.echo(f"ABE(eta={eta:g}, c={c:g}, alpha={alpha:g})\n\n{explain(arms, horizon, gap, c, alpha, eta)}")
    if plot is not None:
        draw(ABE(eta=eta, c=c, alpha=alpha), arms, horizon, gap, plot)
        click.echo(f"\nwrote {plot}")


def draw(policy: Any, n_arms: int, horizon: int, gap: float, path: str) -> None:
    """Simulate the paper's kind of instance and draw it with the bounds, both axes logarithmic."""
    import numpy as np

    from abex import Bernoulli, simulate
    from abex.support.figures import canvas, regret_curves, save
    from abex.theory import Schedule, finite_time_bound, theorem_1

    top = 0.5 + gap if gap < 0.5 else 0.5 + gap / 2.0
    gaps = [gap] * (n_arms - 1)
    environment = Bernoulli([top] + [top - gap] * (n_arms - 1))
    curves = simulate(policy, environment, horizon=horizon, replications=RUNS)
    schedule = Schedule(n_arms, policy.c, policy.alpha)
    steps = curves.checkpoints
    bounds = {
        "every step lost": gap * steps,
        "our finite-time bound": [finite_time_bound(gaps, int(t), schedule, policy.eta) for t in steps],
    }
    if policy.c > 0.0 and policy.alpha > 0.0:
        theorem = [theorem_1(gaps, int(t), policy.c, policy.alpha, policy.eta).value for t in steps]
        if min(theorem) < 100.0 * gap * horizon:  # else it is far above the picture
            bounds["Theorem 1, corrected"] = theorem
    figure, axes = canvas()
    for epoch in takewhile(lambda epoch: epoch.first <= horizon, schedule.epochs()):
        if epoch.exploration:
            last = min(epoch.last_exploration, horizon)
            axes.axvspan(epoch.first - 0.5, last + 0.5, color="#BBBBBB", alpha=0.5, linewidth=0)
    mean, low, high = (np.maximum(values, 1e-3) for values in (curves.mean(policy), *curves.band(policy)))
    axes.set_yscale("log")
    regret_curves(
        steps,
        [
            ("simulated regret", mean, low, high),
            *((label, line, None, None) for label, line in bounds.items()),
        ],
        title=f"{policy}: regret and what is proved about it",
        subtitle=f"{n_arms} arms, gap {gap:g}, mean of {RUNS} runs; "
        f"{schedule.exploration_slots(horizon):,} exploration slots (grey)",
        axes=axes,
    )
    save(figure, path)


@command.command(epilog=examples("abex theory recommend --arms 10 --horizon 20000 --gap 0.25"))
@click.option("--arms", type=WholeNumber(2), required=True, help="Number of arms.")
@click.option("--horizon", type=WholeNumber(1), required=True, help="Number of steps.")
@click.option("--gap", type=float, help="Gap between the best arm and the next, if you know it.")
def recommend(arms: int, horizon: int, gap: float | None) -> None:
    """Parameters of ABE for a problem, and why."""
    from abex.theory import recommend as advise

    click.echo(str(advise(arms, horizon, gap)))
