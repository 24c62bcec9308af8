"""The contract of policies, a function for each promise."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np

from abex.environments import Bernoulli, Beta
from abex.graphs import DropOut, ErdosRenyiEachStep, GraphSequence, complete, erdos_renyi, star
from abex.kernels import Record, fields_of
from abex.players.player import Player
from abex.policies import Uniform, parse_policy
from abex.policies.policy import Policy, Setting, plays_on
from abex.simulation import as_checkpoints, play_replication, simulate
from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.randomness import stream

HORIZON = 2_000
SMALL = Bernoulli([0.2, 0.5, 0.7])
MIXED = Beta([0.2, 0.5, 0.7])


def graph_for(policy: Policy[Any], n_arms: int) -> Any:
    """A graph if the policy needs one."""
    return complete(n_arms) if policy.needs_graph else None


def replicate(policy: Policy[Any], environment: Any, horizon: int, seed: int = 1, **options: Any) -> Any:
    """One replication of a policy."""
    graph = options.pop("graph", graph_for(policy, environment.n_arms))
    return play_replication(policy, environment, graph, as_checkpoints(20, horizon), seed, 0, **options)


def setting_for(policy: Policy[Any], n_arms: int, horizon: int = HORIZON) -> Setting:
    """A setting in which the policy can start."""
    graph = graph_for(policy, n_arms)
    return Setting(n_arms, horizon, graph)


def parts(state: Any) -> tuple[Any, ...]:
    """The fields of a record, or the members of a tuple."""
    if isinstance(state, Record):
        return tuple(getattr(state, name) for name in fields_of(state))
    return state if isinstance(state, tuple) else ()


def leaves(state: Any) -> list[Any]:
    """All arrays of a state record."""
    if isinstance(state, np.ndarray):
        return [state]
    return [leaf for part in parts(state) for leaf in leaves(part)]


def same_states(first: Any, second: Any) -> bool:
    """Whether two states are equal to the last bit."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=True)
    if isinstance(first, tuple | Record):
        return all(same_states(a, b) for a, b in zip(parts(first), parts(second), strict=True))
    return bool(first == second) or first != first


def losses(policy: Policy[Any], environment: Any, **options: Any) -> Any:
    """The regret of each replication at the horizon."""
    options.setdefault("graph", graph_for(policy, environment.n_arms))
    return simulate(policy, environment, progress=False, **options).regret[0, :, -1]


def standard_error(*samples: Any) -> float:
    """The standard error of a difference of means."""
    return float(np.sqrt(sum(np.var(sample, ddof=1) / len(sample) for sample in samples)))


def check_is_a_value(policy: Policy[Any]) -> None:
    """Frozen, hashable, equal after pickling, after parsing its repr, and after a JSON round trip."""
    assert dataclasses.is_dataclass(policy), "a policy is a dataclass"
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert parse_policy(repr(policy)) == policy
    assert parse_policy(str(policy)) == policy
    assert parse_policy(json.loads(json.dumps(repr(policy)))) == policy
    assert hash(copy.copy(policy)) == hash(policy)
    for field in dataclasses.fields(policy):
        try:
            setattr(policy, field.name, None)
        except dataclasses.FrozenInstanceError:
            continue
        raise AssertionError(f"field {field.name} can be changed")


def check_is_one_implementation(policy: Policy[Any]) -> None:
    """Compiled and interpreted runs agree bit for bit, in regret and in state; so does a Player."""
    for environment in (SMALL, MIXED):
        fast = replicate(policy, environment, 300)
        slow = replicate(policy, environment, 300, interpreted=True)
        assert np.array_equal(fast.regret, slow.regret), "regret differs"
        assert same_states(fast.state, slow.state), "state differs"


def check_player_equals_simulator(policy: Policy[Any]) -> None:
    """Step by step, a Player on the same streams makes the simulator's decisions."""
    from abex.support.randomness import counter_key

    horizon = 200
    options: dict[str, Any] = {"horizon": horizon, "propensities": False}  # the simulator works none out
    player = Player(policy, 3, graph=graph_for(policy, 3), seed=5, **options)
    player._rng = stream(1, 0, "policy", repr(policy))
    world = SMALL.open(counter_key(1, 0, "environment"), horizon)
    lost = 0.0
    with np.errstate(over="ignore"):
        for t in range(1, horizon + 1):
            arm = player.select()
            lost += SMALL.gap(world, t, arm)
            also = {k: SMALL.draw(world, t, k) for k in range(3) if k != arm} if policy.needs_graph else None
            player.update(arm, SMALL.draw(world, t, arm), also)
    result = replicate(policy, SMALL, horizon)
    assert abs(result.regret[-1] - lost) < 1e-9
    assert same_states(result.state, player._state.state), "state differs"


def check_is_deterministic(policy: Policy[Any]) -> None:
    """Same seed, same numbers: again, and for any number of workers."""
    options: dict[str, Any] = {"horizon": 500, "replications": 5, "seed": 3, "progress": False}
    graph = graph_for(policy, 3)
    once = simulate(policy, SMALL, workers=1, graph=graph, **options)
    again = simulate([policy, *_another(policy)], SMALL, workers=3, graph=graph, **options)
    assert np.array_equal(once.regret[0], again.regret[0])


def _another(policy: Policy[Any]) -> list[Policy[Any]]:
    return [] if policy == Uniform() else [Uniform()]


def check_is_the_same_in_another_process(policy: Policy[Any]) -> None:
    """Same seed, same numbers in a process with other hash seeds (interpreted, to stay cheap)."""
    if type(policy).__module__.split(".")[0] != "abex" or policy.needs_graph:
        return  # the other process would have to import it
    code = (
        "from abex.testing.policy_contract import replicate, SMALL; from abex.policies import parse_policy;"
        f"print(repr(replicate(parse_policy({repr(policy)!r}), SMALL, 100, interpreted=True).regret.tolist()))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert other.returncode == 0, other.stderr
    assert other.stdout.strip() == repr(replicate(policy, SMALL, 100, interpreted=True).regret.tolist())


def check_plays_valid_arms(policy: Policy[Any]) -> None:
    """For any K >= 1 and any rewards in [0, 1]: an int within range, and no NaN in the state."""
    for n_arms in (1, 2, 7):
        for source in range(4):
            rng = stream(source, "rewards")
            numbers = [np.zeros(60), np.ones(60), rng.random(60), np.round(rng.random(60))][source]
            player = Player(policy, n_arms, graph=graph_for(policy, n_arms), horizon=60, seed=source)
            for reward in numbers:
                arm = player.select()
                assert type(arm) is int
                assert 0 <= arm < n_arms
                player.update(arm, reward)
            assert not any(np.isnan(leaf).any() for leaf in leaves(player._state.state)), "NaN in the state"


def check_survives_a_million_steps(policy: Policy[Any]) -> None:
    """After a million rewards of 1, and of 0: no NaN, no overflow."""
    for mean in (0.0, 1.0):
        result = replicate(policy, Bernoulli([mean, mean]), 1_000_000)
        for leaf in leaves(result.state):
            assert np.isfinite(leaf).all(), "an infinite or undefined number in the state"


def check_select_only_reads(policy: Policy[Any]) -> None:
    """Two selects from equal streams return the same arm, in every state of a run."""
    setting = setting_for(policy, 3)
    kernels = policy.kernels()
    state, rng = policy.start(setting), stream(2, "play")
    for t in range(1, 100):
        first = kernels.select(copy.deepcopy(state), t, copy.deepcopy(rng))
        twin = copy.deepcopy(rng)
        assert kernels.select(state, t, twin) == first
        assert kernels.select(state, t, rng) == first, "the second call differs"
        kernels.update(state, t, first, first, float(first == 1), rng)


def check_start_is_fresh(policy: Policy[Any]) -> None:
    """Two starts share no memory that is written to: playing one leaves the other untouched."""
    setting = setting_for(policy, 3)
    kernels = policy.kernels()
    first, second = policy.start(setting), policy.start(setting)
    before, rng = copy.deepcopy(second), stream(4, "play")
    for t in range(1, 60):
        arm = kernels.select(first, t, rng)
        kernels.update(first, t, arm, arm, 0.5, rng)
    assert same_states(second, before)


def check_leaves_global_randomness_alone(policy: Policy[Any]) -> None:
    """NumPy's global generator is never touched."""
    before = np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    replicate(policy, SMALL, 100, interpreted=True)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index] # noqa: NPY002


def check_treats_arms_alike(policy: Policy[Any]) -> None:
    """Relabelling the arms leaves the mean regret unchanged, within 4 standard errors.

    It need not where, among equal plans, the numbers of the arms decide: leave it out by ``skip``.
    """
    options = {"horizon": 400, "replications": 300}
    one = losses(policy, Bernoulli([0.3, 0.5, 0.7, 0.4]), seed=11, **options)
    other = losses(policy, Bernoulli([0.7, 0.3, 0.4, 0.5]), seed=12, **options)
    assert abs(one.mean() - other.mean()) <= 4.0 * standard_error(one, other) + 1e-9


def check_learns(policy: Policy[Any]) -> None:
    """On arms (0.1, 0.9) it has less than half the regret of uniform choice.

    If it identifies: on ten arms of which one is better, less than nine tenths.
    """
    if isinstance(policy, Uniform):
        return
    means, part = ([0.1] * 9 + [0.9], 0.9) if policy.identifies else ([0.1, 0.9], 0.5)
    uniform = float(np.mean(0.9 - np.array(means))) * HORIZON
    regret = losses(policy, Bernoulli(means), horizon=HORIZON, replications=20, seed=7)
    assert np.median(regret) < part * uniform, f"median regret {np.median(regret):.0f}"


def check_more_feedback_does_not_hurt(policy: Policy[Any]) -> None:
    """Seeing every arm's reward gives no more regret than seeing the pulled one's, within 4 standard errors."""
    if policy.needs_graph:
        return
    options: dict[str, Any] = {"horizon": 500, "replications": 200, "seed": 21}
    environment = Bernoulli([0.3, 0.5, 0.7])
    alone = losses(policy, environment, **options)
    full = losses(policy, environment, graph=complete(3), **options)
    assert full.mean() <= alone.mean() + 4.0 * standard_error(alone, full) + 1e-9


def check_plays_every_kind_of_graph(policy: Policy[Any]) -> None:
    """Undirected, directed and changing graphs: compiled equals interpreted, or a refusal of a changing one at the start."""
    fixed = [star(5), erdos_renyi(5, 0.3, seed=2, directed=True)]
    changing = [
        GraphSequence([*fixed, complete(5)]),
        DropOut(fixed[1], keep=0.5),
        ErdosRenyiEachStep(5, q=0.4),
    ]
    environment = Bernoulli([0.2, 0.5, 0.7, 0.4, 0.6])
    for graph in [*fixed, *(graph for graph in changing if plays_on(policy, graph))]:
        fast = replicate(policy, environment, 100, graph=graph)
        slow = replicate(policy, environment, 100, graph=graph, interpreted=True)
        assert np.array_equal(fast.regret, slow.regret), f"regret differs on {graph}"
        assert same_states(fast.state, slow.state), f"state differs on {graph}"


def check_select_has_the_stated_law(policy: Policy[Any]) -> None:
    """`probabilities` sums to 1 and matches ten thousand selects by a chi-square test at level 1e-6."""
    if policy.probabilities is None:
        return
    with needed():
        from scipy.stats import chisquare

    setting = setting_for(policy, 4)
    kernels = policy.kernels()
    state, rng = policy.start(setting), stream(6, "play")
    for t in range(1, 241):
        if t in (1, 3, 6, 24, 240):
            probabilities = np.zeros(4)
            policy.probabilities(state, t, probabilities)
            assert abs(probabilities.sum() - 1.0) < 1e-9, f"the probabilities sum to {probabilities.sum()}"
            assert (probabilities >= 0.0).all()
            counts = np.bincount([kernels.select(state, t, rng) for _ in range(10_000)], minlength=4)
            assert not counts[probabilities == 0.0].any(), "an arm of probability 0 was played"
            likely = probabilities * 10_000 > 5
            if likely.sum() > 1:
                expected = probabilities[likely] / probabilities[likely].sum() * counts[likely].sum()
                assert chisquare(counts[likely], expected).pvalue > 1e-6
        arm = kernels.select(state, t, rng)
        kernels.update(state, t, arm, arm, float(rng.random() < 0.25 * arm), rng)


def check_resumes_exactly(policy: Policy[Any]) -> None:
    """A Player that was saved and loaded goes on with the same decisions."""
    import tempfile
    from pathlib import Path

    player = Player(policy, 4, graph=graph_for(policy, 4), horizon=200, seed=9)
    for _ in range(20):
        player.update(player.select(), 0.5)
    player.select()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "player.json")
        player.save(path)
        twin = Player.load(path)
    assert twin.pending() == player.pending()
    for _ in range(20):
        decisions = player.decide(), twin.decide()
        assert decisions[0].arm == decisions[1].arm
        assert decisions[0].id != decisions[1].id, "two decisions have one id"
        player.update(decisions[0], 0.25)
        twin.update(decisions[1].id, 0.25)


def check_takes_and_loses_arms(policy: Policy[Any]) -> None:
    """Arms can be added and removed where the policy allows it, and it says so where it does not."""
    player = Player(policy, 3, graph=graph_for(policy, 3), horizon=200, seed=10)
    for _ in range(9):
        player.update(player.select(), 0.5)
    if not policy.resizable or policy.needs_graph:
        try:
            player.add_arm()
        except UserError:
            return
        raise AssertionError("an arm was added although the policy is not resizable")
    assert player.add_arm() == 3
    player.remove_arm(1)
    for _ in range(40):
        arm = player.select()
        assert arm in (0, 2, 3)
        player.update(arm, float(arm == 3))


def check_batches_hold_different_arms(policy: Policy[Any]) -> None:
    """`select(k)` returns k different arms, whatever the state."""
    player = Player(policy, 5, graph=graph_for(policy, 5), horizon=200, seed=12)
    for round_ in range(6):
        arms = player.select(1 + round_ % 5)
        assert len(set(arms)) == len(arms) == 1 + round_ % 5
        player.update_many([(arm, 0.5) for arm in arms])
    assert sorted(player.select(5)) == [0, 1, 2, 3, 4]
