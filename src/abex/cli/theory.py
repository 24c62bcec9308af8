"""`abex theory`: what the analysis says about given parameters, and a recommendation."""

from __future__ import annotations

import click

from abex.cli.help import WholeNumber, examples, number_option
from abex.support.errors import real_number


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "abex theory --c 0.1 --alpha 0.7 --arms 333 --gap 0.25 --horizon 1e6",
        "abex theory --c 8 --alpha 0.5 --arms 4 --gap 0.5 --horizon 1e5 --eta 1",
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
@click.pass_context
def command(
    context: click.Context, c: float, alpha: float, eta: float, arms: int, gap: float, horizon: int
) -> None:  # fmt: skip
    """When ABE explores, how much, and what Theorem 1 says about it, in plain words."""
    if context.invoked_subcommand is not None:
        return
    from abex.theory.explanation import explain

    real_number("--eta", eta, above=0.0)
    click.echo(f"ABE(eta={eta:g}, c={c:g}, alpha={alpha:g})\n\n{explain(arms, horizon, gap, c, alpha, eta)}")


@command.command(epilog=examples("abex theory recommend --arms 10 --horizon 20000 --gap 0.25"))
@click.option("--arms", type=WholeNumber(2), required=True, help="Number of arms.")
@click.option("--horizon", type=WholeNumber(1), required=True, help="Number of steps.")
@click.option("--gap", type=float, help="Gap between the best arm and the next, if you know it.")
def recommend(arms: int, horizon: int, gap: float | None) -> None:
    """Parameters of ABE for a problem, and why."""
    from abex.theory import recommend as advise

    click.echo(str(advise(arms, horizon, gap)))
