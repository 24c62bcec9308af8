"""Every policy: its regret in the simulator and its decisions in a Player."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.subjects import Part, exact

from abex import Player, simulate
from abex.graphs import erdos_renyi
from abex.lab.arena import Instance, grid_of
from abex.lab.arena.study import can_play
from abex.lab.sweeps.problems import bandit_problem
from abex.policies import parse_policy
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.delays import as_delay
from abex.support.errors import UserError

#: at their defaults and with the settings that make them something else
POLICIES = (
    "ABE(eta=1.0)", "ABE(eta=1.0, c=1.0, alpha=0.5)", "ABE(eta=1.0, c=0.3, alpha=0.5, rounding='carry', initial=1.0)",
    "ABE(eta=2.0, rounding='ceil', initial=None)", "ABE(eta=1.0, c=1.0, alpha=0.5, order='index')",
    "ABE(eta=1.0, c=1.0, alpha=0.5, cover='dominating')", "ABE(eta=1.0, c=1.0, alpha=0.5, cover='lp')", "AnytimeMOSS",
    "Boltzmann(eta=1.0)", "Boltzmann(eta=2.0, schedule='log', initial=None)",
    "Boltzmann(eta=8.0, schedule='constant', initial=1.0)", "BoltzmannGumbel", "BoltzmannGumbel(scale=0.25, shared_noise=True)",
    "Certify", "Certify(Thompson, share=0.25)", "DTracking", "KLLUCB", "SuccessiveHalving", "TopTwo",
    "TopTwo(share=0.3, soft=False)",
    "DecayingEpsilonGreedy", "Discounted(UCB1(scale=0.5), gamma=0.995)", "Discounted(Thompson)",
    "Discounted(Evidence)", "Discounted(BoltzmannGumbel)", "ELP", "ELP(independence=2.0)", "ELP(beta=0.05)",
    "EpsilonGreedy", "EpsilonThompson",
    "EpsilonThompson(epsilon=0.5, resample=False)", "Evidence", "Evidence(safety=0.5, forget=False, aim=False)", "Exp3",
    "Exp3(gamma=0.2)", "Exp3DOM", "Exp3DOM(gamma=0.1)", "Exp3IX",
    "Exp3IX(eta=0.05)",
    "Exp3IXGraph", "Exp3P", "Exp3P(gamma=0.15, alpha=0.3)", "Exp3PMultiBoost", "Exp3PlusPlus", "Exp3PlusPlus2014",
    "Exp3S", "Exp3S(gamma=0.2, alpha=0.001)", "Exp3SET", "Exp3SET(eta=0.1)", "ExploreThenCommit", "FollowTheLeader",
    "IMED", "INF", "KLMaillard", "KLUCB", "KLUCBPlusPlus", "MOSS", "Maillard", "Maillard(deviation=1.0)",
    "Restarting(KLUCB, detector=GLR(delta=0.01, every=5, spacing=5, window=200))",
    "Restarting(Thompson, detector=CUSUM(warm_up=20, drift=0.1, threshold=5.0), exploration=0.1, restart='arm')",
    "Screening", "Screening(baseline=0.4, half=0.2, width=0.1, memory=100.0, exploration=0.1)",
    "TSMaxN", "TSU", "TSU(epsilon=0.3)", "Thompson", "Thompson(resample=False)", "TsallisINF", "TsallisINF(estimator='IW')",
    "UCB1",
    "UCB1(scale=0.5)", "UCBMaxN", "UCBV", "Uniform", "Windowed(KLUCB, width=200)",
    "Windowed(Boltzmann(eta=2.0, initial=1.0), width=100)", "Windowed(Thompson, width=100)",
)  # fmt: skip
#: instances of the arena that are small and unlike each other
SMALL = (
    "two coins, gap 0.1", "noisy runner-up", "directed ring", "edges that drop out", "graphs in turns",
    "three coins, one reward in ten lost", "slow good arm", "ten coins in batches of 32", "switching",
    "fast drift", "constrained, two arms", "two arms in turns",
)  # fmt: skip
COMPILED_STEPS = 20_000
STEPS = {"changing": 2_200, "graphs": 120}  # 300 elsewhere
MANY_ARMS = 70  # where samplers find arms that few arms scan


def known() -> Iterator[tuple[str, Any]]:
    """The policies that this version knows, under the texts of the list."""
    for text in POLICIES:
        try:
            policy = parse_policy(text)
        except UserError:
            continue  # it is gone, and a comparison says so
        yield text, policy


def named(names: tuple[str, ...]) -> list[Instance]:
    """The instances of the arena of these names."""
    there = {one.name: one for one in grid_of("train")}
    return [there[name] for name in names if name in there]


def regret() -> Iterator[Part]:
    """Compiled, on the smallest of these instances."""
    (instance,) = named(SMALL[:1])
    environment, _ = bandit_problem(instance.problem)
    known_graph = erdos_renyi(environment.n_arms, 0.5, seed=1)
    for text, policy in known():
        graph = known_graph if policy.needs_graph else None
        curves = simulate(
            policy, environment, graph=graph, horizon=COMPILED_STEPS, replications=2, seed=1, workers=1,
            checkpoints=30, progress=False,
        )  # fmt: skip
        yield text, f"{exact(curves.regret)}; {exact(curves.optimal_pulls)}"


def interpreted_regret() -> Iterator[Part]:
    """Interpreted, on small instances of every group; compiled runs are the same, as the contract of policies promises."""
    for instance in named(SMALL):
        environment, graph = bandit_problem(instance.problem)
        delay = instance.problem.get("delay")
        steps = as_checkpoints(20, STEPS.get(instance.group, 300))
        for text, policy in known():
            if can_play(policy, instance):
                played = play_replication(
                    policy, environment, graph, steps, 1, 0, delay=delay and as_delay(delay),
                    batch=instance.problem.get("batch", 1), interpreted=True,
                )  # fmt: skip
                yield f"{text} on {instance.name}", f"{exact(played.regret)}; {exact(played.optimal_pulls)}"


def decisions() -> Iterator[Part]:
    """Of a Player that is saved and loaded on the way, with few arms and with many."""
    for text, policy in known():
        yield f"{text}, 4 arms", played(policy, 4, 180)
        if not policy.needs_graph:
            yield f"{text}, {MANY_ARMS} arms", played(policy, MANY_ARMS, 120)


def played(policy: Any, n_arms: int, steps: int) -> str:
    """Arms of all decisions and probabilities of some, while rewards come late or with others, and arms come and go."""
    graph = erdos_renyi(n_arms, 0.5, seed=1) if policy.needs_graph else None
    player = Player(policy, n_arms, graph=graph, horizon=steps, seed=1, compiled=False)
    waiting: list[Any] = []
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "player.json"
        for step in range(steps):
            made = player.decide_many(2) if step % 11 == 10 else [player.decide()]
            said += [str(one.arm) for one in made]
            if step % (3 * n_arms) == 1:
                said.append(chance(made[0]))
            waiting += [(one.id, one.arm) for one in made]
            while len(waiting) > step % 5:  # up to four rewards are late
                name, arm = waiting.pop(0)
                shown = {other: paid(step, other) for other in player.arms[:2] if other != arm}
                player.update(name, paid(step, arm), shown if step % 7 == 6 else None)
            if step % 13 == 12:
                player.update(player.arms[-1], paid(step, 0))  # tried elsewhere
            if policy.resizable and not policy.needs_graph and step in (steps // 3, steps // 2):
                waiting = change_arms(player, waiting)
            if step % (steps // 3) == steps // 4:
                player.save(path)
                try:
                    player = Player.load(path)
                except UserError:
                    said.append("refused to load what it saved")
    return "; ".join(said)


def chance(decision: Any) -> str:
    """The probability of a decision, where it can be worked out."""
    try:
        return exact(decision.probability)
    except UserError:
        return "unknown"


def change_arms(player: Player, waiting: list[Any]) -> list[Any]:
    """One arm comes and the second goes; the decisions that still wait."""
    gone = player.arms[1]
    player.add_arm()
    player.remove_arm(gone)
    return [(name, arm) for name, arm in waiting if arm != gone]


def paid(step: int, arm: int) -> float:
    """A reward that is a function of step and arm, larger for later arms, in quarters."""
    return ((step * 7 + arm * 13 + step * arm) % 5 + 4 * (arm % 4 == 3)) / 8
