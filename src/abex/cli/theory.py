"""`abex theory`: what the analysis says about given parameters, and a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
@click.option(
    "--rounding", type=click.Choice(("floor", "carry", "ceil")), default="floor", show_default=True,
    help="Of the amount of exploration; floor is the paper's.",
)  # fmt: skip
@number_option("--arms", 333, "Number of arms.", least=2)
@click.option(
    "--gap", type=float, default=0.25, show_default=True, help="Gap between the best arm and all others."
)
@number_option("--horizon", 1_000_000, "Number of steps.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    help="Draw schedule, bounds and simulated regret (png, svg, pdf).",
)
@click.pass_context
def command(
    context: click.Context, c: float, alpha: float, eta: float, rounding: str, arms: int, gap: float,
    horizon: int, plot: str | None,
) -> None:  # fmt: skip
    """When ABE explores, how much, and what Theorem 1 says about it, in plain words."""
    if context.invoked_subcommand is not None:
        return
    from abex.support.figures import kind_of
    from abex.theory.explanation import explain

    real_number("--eta", eta, above=0.0)
    if plot is not None:
        kind_of(plot)
    words = explain(arms, horizon, gap, c, alpha, eta, rounding)
    click.echo(f"ABE(eta={eta:g}, c={c:g}, alpha={alpha:g}, rounding={rounding!r})\n\n{words}")
    if plot is not None:
        draw(arms, horizon, gap, c, alpha, eta, rounding, plot)
        click.echo(f"\nwrote {plot}")


def draw(
    n_arms: int, horizon: int, gap: float, c: float, alpha: float, eta: float, rounding: str,
    path: str,
) -> None:  # fmt: skip
    """Simulate the paper's kind of instance and draw it with the bounds."""
    from itertools import takewhile

    import numpy as np

    from abex import ABE, Bernoulli, simulate
    from abex.theory import Schedule, finite_time_bound, theorem_1

    top = 0.5 + gap if gap < 0.5 else 0.5 + gap / 2.0
    gaps = [gap] * (n_arms - 1)
    policy = ABE(eta=eta, c=c, alpha=alpha, rounding=rounding)
    environment = Bernoulli([top] + [top - gap] * (n_arms - 1))
    curves = simulate(policy, environment, horizon=horizon, replications=RUNS)
    schedule = Schedule(n_arms, c, alpha, rounding)
    steps = curves.checkpoints
    bounds = {"every step lost": gap * steps}
    bounds["our finite-time bound"] = np.array(
        [finite_time_bound(gaps, int(t), schedule, eta) for t in steps]
    )
    if c > 0.0 and alpha > 0.0:
        theorem = np.array([theorem_1(gaps, int(t), c, alpha, eta).value for t in steps])
        if theorem.min() < 100.0 * gap * horizon:  # else it is far above the picture
            bounds["Theorem 1, corrected"] = theorem
    epochs = takewhile(lambda epoch: epoch.first <= horizon, schedule.epochs())
    phases = [(epoch.first, min(epoch.last_exploration, horizon)) for epoch in epochs if epoch.exploration]
    explored = schedule.exploration_slots(horizon)
    low, high = curves.band(policy)
    schedule_and_bounds(
        steps, (curves.mean(policy), low, high), bounds, phases,
        title=f"{policy}: regret and what is proved about it",
        subtitle=f"{n_arms} arms, gap {gap:g}, mean of {RUNS} runs; {explored:,} exploration slots (grey)",
        path=path,
    )  # fmt: skip


def schedule_and_bounds(
    steps: Any,
    regret: tuple[Any, Any, Any],
    bounds: dict[str, Any],
    phases: Sequence[tuple[int, int]],
    *,
    title: str,
    subtitle: str = "",
    path: str | Path | None = None,
) -> Any:
    """Simulated regret (mean, low, high) and bounds on it over steps, both logarithmic; exploration ``phases`` in grey."""
    import numpy as np

    from abex.support.figures import canvas, entitle, save, style_of

    figure, axes = canvas()
    for first, last in phases:
        axes.axvspan(first - 0.5, last + 0.5, color="#BBBBBB", alpha=0.5, linewidth=0)
    mean, low, high = (np.maximum(values, 1e-3) for values in regret)
    axes.plot(steps, mean, linewidth=1.8, label="simulated regret", **style_of(0))
    axes.fill_between(steps, low, high, color=style_of(0)["color"], alpha=0.18, linewidth=0)
    for position, (label, values) in enumerate(bounds.items(), start=1):
        axes.plot(
            steps, values, linewidth=1.3, label=label, color=style_of(position)["color"], linestyle="--"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(float(steps[0]), float(steps[-1]))
    axes.set_xlabel("step")
    axes.set_ylabel("regret (sum of lost mean rewards)")
    axes.legend(loc="upper left", fontsize=9)
    entitle(axes, title, subtitle)
    return save(figure, path)


@command.command(epilog=examples("abex theory recommend --arms 10 --horizon 20000 --gap 0.25"))
@click.option("--arms", type=WholeNumber(2), required=True, help="Number of arms.")
@click.option("--horizon", type=WholeNumber(1), required=True, help="Number of steps.")
@click.option("--gap", type=float, help="Gap between the best arm and the next, if you know it.")
@click.option("--sweep", type=WholeNumber(1), help="Pulls that show every arm once, on a feedback graph.")
@click.option("--sigma", type=float, default=0.5, show_default=True, help="Standard deviation of a reward.")
def recommend(arms: int, horizon: int, gap: float | None, sweep: int | None, sigma: float) -> None:
    """Parameters of ABE for a problem, and why."""
    from abex.theory import recommend as advise

    click.echo(str(advise(arms, horizon, gap, sweep=sweep, sigma=sigma)))
