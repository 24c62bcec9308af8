"""Policies in worlds that change: a table and figures for the documentation, and a comparison with SMPyBandits.

    python -m benchmarks.changing                                       the table of docs/changing_worlds.md and its figures
    python -m benchmarks.changing --smpybandits /path/to/python         the same policies of SMPyBandits 0.9.7, run by the Python
                                                                        of an environment in which it is installed

The comparison plays SW-UCB, D-UCB and GLR-klUCB on the same instances and tells by how many standard errors the mean regrets
differ.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from pathlib import Path

import numpy as np

from abex import (
    ABE,
    CUSUM,
    GLR,
    KLUCB,
    UCB1,
    Boltzmann,
    Discounted,
    Exp3S,
    Published,
    Restarting,
    Thompson,
    Windowed,
    simulate,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"
PROBLEMS = ("garivier-moulines-1", "garivier-moulines-2", "besson-1", "besson-2", "besson-3", "besson-4", "besson-5",
            "one-arm-dies", "boosting-trend")  # fmt: skip
HORIZON = 20_000
CHANGES = 4  # what the tuned policies are told, right or wrong: about as many as the problems have
COMPARED = ("garivier-moulines-1", "besson-1", "besson-3", "besson-4")
SHORT = 2_000  # steps of the comparison: the other library takes about a tenth of a millisecond for each

THEIRS = """
import contextlib, io, json, sys
import numpy as np
import scipy.special
scipy.special.btdtri = scipy.special.betaincinv  # its name before SciPy 1.14, which SMPyBandits asks for
with contextlib.redirect_stdout(io.StringIO()):
    from SMPyBandits.Policies import SWUCB, DiscountedUCB
    from SMPyBandits.Policies.GLR_UCB import BernoulliGLR_IndexPolicy_WithDeterministicExploration as GLR
    from SMPyBandits.Policies.klUCB_forGLR import klUCB_forGLR

class FixedDiscountedUCB(DiscountedUCB):
    "The published rule: the pulls and rewards of all arms are discounted at every step, not only those of the arm played."
    def getReward(self, arm, reward):
        self.t += 1
        self.pulls[arm] += 1
        self.discounted_pulls = self.gamma * self.discounted_pulls
        self.discounted_rewards = self.gamma * self.discounted_rewards
        self.discounted_pulls[arm] += 1
        self.discounted_rewards[arm] += reward
    def computeAllIndex(self):
        n = np.sum(self.discounted_pulls)
        with np.errstate(all="ignore"):
            found = self.discounted_rewards / self.discounted_pulls
            found = found + np.sqrt(self.alpha * np.log(n) / (2 * self.discounted_pulls))
        found[self.discounted_pulls <= 0] = float("+inf")
        self.index[:] = found

asked = json.load(sys.stdin)
K, T = len(asked["means"][0]), asked["horizon"]
made = {
    "SW-UCB": lambda: SWUCB(K, tau=asked["width"], alpha=asked["scale"]),
    "D-UCB": lambda: FixedDiscountedUCB(K, alpha=2 * asked["scale"], gamma=asked["gamma"]),
    "D-UCB as shipped": lambda: DiscountedUCB(K, alpha=2 * asked["scale"], gamma=asked["gamma"]),
    "GLR-klUCB": lambda: GLR(K, horizon=T, policy=klUCB_forGLR, delta=asked["delta"], alpha0=asked["exploration"],
                             per_arm_restart=False, use_localization=False),
}
means = np.repeat(np.array(asked["means"]), asked["lengths"], axis=0)
result = {}
for name, make in made.items():
    result[name] = []
    for run in range(asked["replications"]):
        rng = np.random.default_rng([run, 7])
        np.random.seed(run)
        with contextlib.redirect_stdout(io.StringIO()):
            policy = make()
            policy.startGame()
            if hasattr(policy, "_alpha0"):
                policy._alpha0, policy.delta, policy.policy.c = asked["exploration"], asked["delta"], 1
            lost = 0.0
            for t in range(T):
                arm = int(policy.choice())
                lost += means[t].max() - means[t, arm]
                policy.getReward(arm, float(rng.random() < means[t, arm]))
        result[name].append(lost)
json.dump(result, sys.stdout)
"""


def policies(horizon: int) -> dict[str, object]:
    """What is compared, by the name of the literature, tuned for `CHANGES` changes."""
    width = round(2.0 * math.sqrt(horizon * math.log(horizon) / CHANGES))
    gamma = 1.0 - 0.25 * math.sqrt(CHANGES / horizon)
    delta, exploration = (
        1.0 / math.sqrt(CHANGES * horizon),
        0.1 * math.sqrt(CHANGES * math.log(horizon) / horizon),
    )
    glr = GLR(delta=delta)
    return {
        "UCB1": UCB1(scale=0.5),
        "KL-UCB": KLUCB(),
        "Thompson": Thompson(),
        "D-UCB": Discounted(UCB1(scale=0.5), gamma=gamma),
        "D-KL-UCB": Discounted(KLUCB(), gamma=gamma),
        "dTS": Discounted(Thompson(), gamma=gamma),
        "discounted ABE": Discounted(ABE(eta=1.0), gamma=gamma),
        "SW-UCB": Windowed(UCB1(scale=0.5), width=width),
        "SW-KL-UCB": Windowed(KLUCB(), width=width),
        "SW-TS": Windowed(Thompson(), width=width),
        "SW-Boltzmann": Windowed(Boltzmann(eta=1.0), width=width),
        "GLR-klUCB": Restarting(KLUCB(), detector=glr, exploration=exploration),
        "GLR-klUCB, local": Restarting(KLUCB(), detector=glr, exploration=exploration, restart="arm"),
        "GLR-TS": Restarting(Thompson(), detector=glr, exploration=exploration),
        "CUSUM-klUCB": Restarting(KLUCB(), detector=CUSUM(), exploration=exploration),
        "EXP3.S": Exp3S(changes=CHANGES),
    }


def table(replications: int) -> None:
    """Mean regret on every problem as a table, and a figure for each."""
    chosen = policies(HORIZON)
    regrets, detections = {}, []
    (DOCS / "figures").mkdir(exist_ok=True)
    for problem in PROBLEMS:
        curves = simulate(
            list(chosen.values()),
            Published(problem),
            horizon=HORIZON,
            replications=replications,
            seed=1,
            progress=False,
        )
        final = curves.regret[:, :, -1]
        regrets[problem] = final.mean(axis=1), final.std(axis=1, ddof=1) / math.sqrt(replications)
        for name, policy in chosen.items():
            report = curves.report(policy)
            if "detection delay" in report:
                detections.append((problem, name, report))
        if problem in ("garivier-moulines-1", "besson-2"):
            figure(curves, chosen, problem)
    best = {problem: min(mean) for problem, (mean, _) in regrets.items()}
    lines = [
        "| policy | " + " | ".join(PROBLEMS) + " | worst ratio |",
        "|---|" + "---:|" * (len(PROBLEMS) + 1),
    ]
    for number, name in enumerate(chosen):
        cells = []
        for problem in PROBLEMS:
            mean, error = (part[number] for part in regrets[problem])
            text = f"{mean:.0f} ± {error:.0f}"
            cells.append(f"**{text}**" if mean <= best[problem] * 1.05 else text)
        ratio = max(regrets[problem][0][number] / best[problem] for problem in PROBLEMS)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio:.1f} |")
    lines += [
        "",
        "| problem | policy | detection delay | missed changes | false alarms |",
        "|---|---|---:|---:|---:|",
    ]
    for problem, name, report in detections:
        numbers = [report[key] for key in ("detection delay", "missed changes", "false alarms")]
        lines.append(f"| {problem} | {name} | {numbers[0]:.0f} | {numbers[1]:.2f} | {numbers[2]:.2f} |")
    text = "\n".join(lines) + "\n"
    (DOCS / "changing_worlds_table.md").write_text(text)
    print(text)


def figure(curves, chosen, problem: str) -> None:
    """Regret over time of a few policies."""
    from abex.support.figures import regret_curves

    shown = ("UCB1", "EXP3.S", "D-UCB", "SW-UCB", "SW-TS", "GLR-klUCB")
    lines = [(name, curves.mean(chosen[name]), *curves.band(chosen[name])) for name in shown]
    subtitle = f"{problem}: mean of {curves.regret.shape[1]} replications, 95% confidence band"
    regret_curves(
        curves.checkpoints,
        lines,
        subtitle=subtitle,
        log=False,
        path=DOCS / "figures" / f"changing-{problem}.png",
    )


def compare(python: str, replications: int) -> int:
    """Mean regrets here and there; how many differ by more than four standard errors."""
    width, gamma, scale, delta, exploration = 400, 0.99, 0.6, 0.01, 0.1
    ours = {
        "SW-UCB": Windowed(UCB1(scale=scale), width=width),
        "D-UCB": Discounted(UCB1(scale=scale), gamma=gamma),
        "GLR-klUCB": Restarting(KLUCB(), detector=GLR(delta=delta), exploration=exploration),
    }
    ours["D-UCB as shipped"] = ours["D-UCB"]
    apart = 0
    for problem in COMPARED:
        environment = Published(problem)
        begins, means = environment.path(np.uint64(0), SHORT)
        asked = {
            "means": means.tolist(), "lengths": np.diff(np.append(begins, SHORT)).tolist(), "horizon": SHORT, "width": width,
            "gamma": gamma, "scale": scale, "delta": delta, "exploration": exploration, "replications": replications,
        }  # fmt: skip
        ran = subprocess.run(
            [python, "-c", THEIRS], input=json.dumps(asked), capture_output=True, text=True, check=True
        )
        theirs = json.loads(ran.stdout)
        for name, policy in ours.items():
            here = simulate(
                policy, environment, horizon=SHORT, replications=1000, seed=1, progress=False
            ).regret[0, :, -1]
            there = np.array(theirs[name])
            error = math.hypot(*(x.std(ddof=1) / math.sqrt(x.size) for x in (here, there)))
            distance = (here.mean() - there.mean()) / error
            apart += abs(distance) > 4.0 and "shipped" not in name
            print(f"{problem:22} {name:18} here {here.mean():7.1f}  there {there.mean():7.1f}  "
                  f"difference {distance:+.1f} standard errors", flush=True)  # fmt: skip
    print(f"{apart} of {3 * len(COMPARED)} differ by more than four standard errors")
    return apart


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--smpybandits", metavar="PYTHON", help="compare with SMPyBandits, run by this Python"
    )
    parser.add_argument("--replications", type=int, default=200)
    given = parser.parse_args()
    if given.smpybandits:
        raise SystemExit(compare(given.smpybandits, given.replications) > 0)
    table(given.replications)
