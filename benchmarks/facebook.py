"""The paper's Facebook experiment: regret on ego network 0, beside orientation values from an independent implementation.

    ABEX_DATA=folder python benchmarks/facebook.py [replications]

Each row: regret at T = 50,000 with its standard error, the orientation value, and their distance in joint standard errors.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import numpy as np

from abex import (
    ABE,
    ELP,
    KLUCB,
    TSU,
    UCB1,
    BoltzmannGumbel,
    Exp3DOM,
    Exp3IXGraph,
    Exp3SET,
    Graph,
    SpecialArm,
    Thompson,
    TSMaxN,
    UCBMaxN,
    Uniform,
    simulate,
)  # fmt: skip
from abex.policies.policy import Policy

HORIZON = 50_000

#: policy -> (regret, standard error) over 12 seeds of the orientation runs, None where there is none
ORIENTATION: dict[Policy, tuple[float, float] | None] = {
    ABE(eta=0.05): (12216, 10),
    ABE(eta=0.1): (10444, 44),
    ABE(eta=0.2): (3919, 50),
    ABE(eta=0.4): (1166, 24),
    ABE(eta=1.0): (1323, 1016),
    ABE(eta=1.0, initial=1.0): (521, 117),
    ABE(eta=2.0): (2550, 1351),
    ABE(eta=2.0, initial=1.0): (664, 401),
    ABE(eta=0.1, c=1.0, alpha=0.5): (10540, 43),
    ABE(eta=0.4, c=1.0, alpha=0.5): (1383, 36),
    ABE(eta=1.0, c=1.0, alpha=0.5): (1008, 404),
    ABE(eta=2.0, c=1.0, alpha=0.5): (558, 58),
    ABE(eta=0.4, c=3.0, alpha=0.3): (1649, 26),
    BoltzmannGumbel(scale=0.25): (2005, 22),
    BoltzmannGumbel(scale=0.5): (5202, 44),
    BoltzmannGumbel(scale=0.25, shared_noise=True): (693, 21),
    Thompson(): (1336, 15),
    TSU(): (1408, 20),
    UCB1(): (7996, 57),
    UCB1(scale=0.5): (2381, 42),
    ELP(independence=120): (10070, 178),
    ELP(independence=45): (7024, 153),
    ELP(independence=10): (4970, 173),
}

#: what the paper left out
OTHERS: list[Policy] = [
    ABE(eta=0.2, c=0.2, alpha=0.5),
    ABE(eta=0.4, c=0.2, alpha=0.7),
    ABE(eta=0.4, c=0.3, alpha=0.5),
    ABE(eta=0.4, c=2.0, alpha=0.4),
    ABE(eta=1.0, c=1.0, alpha=0.5, cover="dominating"),
    ABE(eta=1.0, c=1.0, alpha=0.5, cover="lp"),
    ABE(eta=1.0, rounding="carry"),
    ABE(eta=2.0, rounding="carry", cover="dominating"),
    KLUCB(), TSMaxN(), UCBMaxN(), UCBMaxN(scale=0.5),
    Exp3SET(), Exp3IXGraph(), Exp3DOM(), Uniform(),
]  # fmt: skip


def facebook_graph() -> Graph:
    """Ego network 0, from ``$ABEX_DATA`` or beside the repository."""
    folders = [os.environ.get("ABEX_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    for folder in folders:
        if folder and (path := Path(folder, "facebook", "0.edges")).exists():
            return Graph.read(path)
    raise SystemExit("facebook/0.edges is not there: set ABEX_DATA to the folder of the data sets")


def compare(
    policies: list[Policy], replications: int, seed: int = 1, horizon: int = HORIZON
) -> dict[Policy, np.ndarray]:
    """Regret at the horizon of each replication; all policies face the same rewards and special nodes."""
    graph = facebook_graph()
    curves = simulate(
        policies, SpecialArm(graph.n_arms), graph=graph, horizon=horizon, replications=replications, seed=seed,
        checkpoints=[horizon], progress=False,
    )  # fmt: skip
    return {policy: curves.regret[number, :, -1] for number, policy in enumerate(policies)}


def main() -> None:
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(
        f"{'policy':58s} {'regret':>8s} {'s.e.':>6s} {'median':>8s} {'orientation':>14s} {'distance':>8s} {'CPU s':>6s}"
    )
    for policy in [*ORIENTATION, *OTHERS]:
        began = time.process_time()
        regret = compare([policy], replications)[policy]
        error = regret.std(ddof=1) / math.sqrt(replications)
        row = f"{policy!s:58s} {regret.mean():8.0f} {error:6.0f} {np.median(regret):8.0f}"
        known = ORIENTATION.get(policy)
        if known:
            distance = abs(regret.mean() - known[0]) / math.hypot(error, known[1])
            row += f" {known[0]:7.0f}+-{known[1]:5.0f} {distance:8.1f}"
        else:
            row += " " * 24
        print(f"{row} {time.process_time() - began:6.1f}", flush=True)


if __name__ == "__main__":
    main()
