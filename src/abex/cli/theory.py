"""`abex theory`: what the analysis says about given parameters, a recommendation, and a study of it."""

from __future__ import annotations

import click

from abex.errors import real_number, whole_number

EXAMPLE = """
\b
Example:
  abex theory --c 0.1 --alpha 0.7 --arms 333 --gap 0.25 --horizon 1e6
  abex theory --c 8 --alpha 0.5 --arms 4 --gap 0.5 --horizon 1e5 --eta 1 --plot bound.svg
"""


@click.group(invoke_without_command=True, epilog=EXAMPLE)
@click.option("--c", type=float, default=0.1, show_default=True, help="Amount of exploration.")
@click.option("--alpha", type=float, default=0.7, show_default=True, help="Growth of exploration.")
@click.option("--eta", type=float, default=0.4, show_default=True, help="Scale of the Boltzmann rate.")
@click.option("--rounding", default="floor", show_default=True, help="floor (the paper's), carry or ceil.")
@click.option("--arms", type=float, default=333, show_default=True, help="Number of arms.")
@click.option(
    "--gap", type=float, default=0.25, show_default=True, help="Gap between the best arm and all others."
)
@click.option("--horizon", type=float, default=1e6, show_default=True, help="Number of steps.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    help="Draw schedule, bounds and simulated regret (png, svg, pdf).",
)
@click.option("--replications", type=int, default=20, show_default=True, help="Simulated runs for --plot.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulation for --plot.")
@click.pass_context
def command(
    context: click.Context, c: float, alpha: float, eta: float, rounding: str, arms: float, gap: float,
    horizon: float, plot: str | None, replications: int, seed: int,
) -> None:  # fmt: skip
    """When ABE explores, how much, and what Theorem 1 says about it, in plain words."""
    if context.invoked_subcommand is not None:
        return
    from abex.theory.words import explain

    n_arms, steps = whole_number("arms", arms, least=2), whole_number("horizon", horizon, least=1)
    real_number("eta", eta, above=0.0)
    words = explain(n_arms, steps, gap, c, alpha, eta, rounding)
    click.echo(f"ABE(eta={eta:g}, c={c:g}, alpha={alpha:g}, rounding={rounding!r})\n\n{words}")
    if plot is not None:
        draw(n_arms, steps, gap, c, alpha, eta, rounding, plot, replications, seed)
        click.echo(f"\nwrote {plot}")


def draw(
    n_arms: int, horizon: int, gap: float, c: float, alpha: float, eta: float, rounding: str,
    path: str, replications: int, seed: int,
) -> None:  # fmt: skip
    """Simulate the paper's kind of instance and draw it with the bounds."""
    from itertools import takewhile

    import numpy as np

    from abex import ABE, Bernoulli, simulate
    from abex.figures import schedule_and_bounds
    from abex.theory import Schedule, finite_time_bound, theorem_1

    top = 0.5 + gap if gap < 0.5 else 0.5 + gap / 2.0
    gaps = [gap] * (n_arms - 1)
    policy = ABE(eta=eta, c=c, alpha=alpha, rounding=rounding)
    environment = Bernoulli([top] + [top - gap] * (n_arms - 1))
    curves = simulate(policy, environment, horizon=horizon, replications=replications, seed=seed)
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
        subtitle=f"{n_arms} arms, gap {gap:g}, mean of {replications} runs; {explored:,} exploration slots (grey)",
        path=path,
    )  # fmt: skip


@command.command()
@click.option("--arms", type=float, required=True, help="Number of arms.")
@click.option("--horizon", type=float, required=True, help="Number of steps.")
@click.option("--gap", type=float, help="Gap between the best arm and the next, if you know it.")
@click.option("--sweep", type=float, help="Pulls that show every arm once, on a feedback graph.")
@click.option("--sigma", type=float, default=0.5, show_default=True, help="Standard deviation of a reward.")
def recommend(arms: float, horizon: float, gap: float | None, sweep: float | None, sigma: float) -> None:
    r"""Parameters of ABE for a problem, and why.

    \b
    Example:
      abex theory recommend --arms 10 --horizon 20000 --gap 0.25
    """
    from abex.theory import recommend as advise

    pulls = None if sweep is None else whole_number("sweep", sweep, least=1)
    click.echo(
        str(
            advise(
                whole_number("arms", arms, least=2),
                whole_number("horizon", horizon),
                gap,
                sweep=pulls,
                sigma=sigma,
            )
        )
    )


@command.command()
@click.option(
    "--arms", type=int, multiple=True, default=(3, 20, 100), show_default=True, help="Numbers of arms."
)
@click.option(
    "--gap", type=float, multiple=True, default=(0.1, 0.2, 0.4), show_default=True, help="Smallest gaps."
)
@click.option("--horizon", type=float, default=20_000, show_default=True, help="Number of steps.")
@click.option("--replications", type=int, default=40, show_default=True, help="Runs of each choice.")
@click.option("--seed", type=int, default=0, show_default=True, help="Names every random number.")
def study(
    arms: tuple[int, ...], gap: tuple[float, ...], horizon: float, replications: int, seed: int
) -> None:
    r"""How far the recommendation is from the best fixed choice in hindsight, and from the paper's parameters.

    \b
    Example:
      abex theory study --arms 5 --gap 0.3 --horizon 5000
    """
    from abex.cli.theory_study import run_study, table

    whole_number("replications", replications, least=1)
    result = run_study(arms, gap, whole_number("horizon", horizon, least=1), replications, seed)
    click.echo(table(result))
