"""Steps of the compiled loop, and what a process pays before its first step."""

from __future__ import annotations

import subprocess
import sys

from abex import ABE, UCB1, Bernoulli, Evidence, Thompson, simulate

POLICIES = {"Evidence": Evidence(), "Thompson": Thompson(), "UCB1": UCB1(), "ABE": ABE()}


class Steps:
    """CPU time of 200,000 steps, decision, reward and update, compiled before."""

    params = (list(POLICIES), [10, 1_000])
    param_names = ("policy", "arms")
    timeout = 300.0

    def setup(self, policy: str, arms: int) -> None:
        """Compile."""
        self.environment = Bernoulli([0.75] + [0.5] * (arms - 1))
        simulate(POLICIES[policy], self.environment, horizon=10, replications=1)

    def time_steps(self, policy: str, arms: int) -> None:
        """One replication in one thread."""
        simulate(POLICIES[policy], self.environment, horizon=200_000, replications=1, workers=1)


class Start:
    """What a program waits for."""

    def time_import(self) -> None:
        """Importing abex in a fresh process."""
        subprocess.run([sys.executable, "-c", "import abex"], check=True)
