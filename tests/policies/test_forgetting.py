"""Policies that forget: step by step against what the whole history says."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from abex import (
    ABE,
    IMED,
    KLUCB,
    MOSS,
    UCB1,
    UCBV,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Discounted,
    EpsilonThompson,
    Evidence,
    KLUCBPlusPlus,
    Maillard,
    Player,
    Restarting,
    Thompson,
    UserError,
    Windowed,
    parse_policy,
    simulate,
)  # fmt: skip
from abex.graphs import star
from abex.kernels import kernel
from abex.kinds import Count, Mean
from abex.policies.index import IndexPolicy
from abex.policies.learner import Learned, Learner
from abex.policies.means import learn_mean
from abex.policies.policy import Setting
from abex.samplers import FEW, FEW_FADING, sampler_for
from abex.samplers.tournament import Tournament
from abex.simulation import as_checkpoints, play_replication
from abex.support.divergence import bernoulli_kl, kl_upper_bound, two_moment_divergence
from abex.support.randomness import stream
from abex.testing.policy_contract import same_states
from tests.each import each
from tests.naive.forgetting import discounted, windowed, windowed_exactly

INSIDE = [
    UCB1(scale=0.5), KLUCB(), Thompson(), Thompson(resample=False), EpsilonThompson(), IMED(), Maillard(),
    Maillard(divergence="bernoulli"),
    Boltzmann(eta=1.0), Boltzmann(eta=1.0, initial=None), ABE(eta=1.0, c=1.0, alpha=0.5), BoltzmannGumbel(), Evidence(),
    UCBV(), MOSS(horizon=50), MOSS(anytime=1.35), KLUCBPlusPlus(horizon=60),
]  # fmt: skip
WAYS = [
    (lambda inside: Discounted(inside, gamma=0.9), lambda h, t, n: discounted(h, t, n, 0.9)),
    (lambda inside: Discounted(inside, gamma=0.5), lambda h, t, n: discounted(h, t, n, 0.5)),
    (lambda inside: Windowed(inside, width=20), lambda h, t, n: windowed(h, t, n, 20)),
    (lambda inside: Windowed(inside, width=1), lambda h, t, n: windowed(h, t, n, 1)),
]


def between(chance, likely):
    """A fraction, the larger where the arm is the likely one."""
    return min(1.0, chance.random() * 0.5 + 0.5 * likely)


def play(policy, n_arms, steps, seed, late=0, graph=None, reward_of=between):
    """Yield (t, state, history, select) before each decision; rewards come up to ``late`` steps late."""
    setting = Setting(n_arms, None, graph)
    select, update = policy.kernels()
    state, rng, chance = policy.start(setting), stream(seed, "policy"), stream(seed, "rewards")
    history, waiting = [], []
    for t in range(1, steps + 1):
        for _, step, arm, seen in [one for one in waiting if one[0] <= t]:
            for k in seen:
                reward = reward_of(chance, (k + step // 60) % n_arms == 0)
                if isinstance(getattr(policy.policy, "resample", None), bool):
                    reward = float(reward > 0.5)
                update(state, step, arm, k, reward, rng)
                history.append((step, k, reward))
        waiting = [one for one in waiting if one[0] > t]
        yield t, state, history, select
        arm = select(state, t, rng)
        shown = [arm] if graph is None else [*(int(k) for k in graph.out(arm) if k != arm), arm]
        waiting.append((t + 1 + int(chance.random() * (late + 1)), t, arm, shown))


def known(state):
    """The counts and means in the state, whatever it scales them by."""
    factor = getattr(state.memory, "factor", 1.0)
    if hasattr(state, "successes"):
        counts = state.successes + state.failures - 2.0
        with np.errstate(invalid="ignore"):
            return counts / factor, (state.successes - 1.0) / counts
    return state.observations / factor, state.means


def index(policy, count, mean, time, counts, means, spread=0.0):
    if count == 0.0:
        return math.inf
    if isinstance(policy, UCBV):
        level = policy.zeta * math.log(time) / count
        return mean + math.sqrt(2.0 * level * spread) + 3.0 * policy.c * level
    if isinstance(policy, MOSS):
        share = (time if policy.anytime else policy.horizon) / counts.size / count
        factor = (1.0 + policy.anytime) / 2.0 if policy.anytime else 1.0
        return mean + math.sqrt(factor * max(math.log(share), 0.0) / count)
    if isinstance(policy, KLUCBPlusPlus):
        log = max(math.log(policy.horizon / counts.size / count), 0.0)
        return kl_upper_bound(mean, (log + math.log1p(log * log)) / count)
    if isinstance(policy, UCB1):
        return mean + math.sqrt(policy.scale * math.log(time) / count)
    if isinstance(policy, KLUCB):
        return kl_upper_bound(mean, max(math.log(time), 0.0) / count)
    best = means[counts > 0].max()
    return -count * bernoulli_kl(mean, best) - math.log(count)


def evidence_law(policy, time, counts, means, squares, highest):
    """The mixture of cautious and other steps, by the formula."""
    seen, law = counts > 0.0, np.zeros(counts.size)
    if not seen.any():
        return np.full(counts.size, 1.0 / counts.size)
    lead = max(np.flatnonzero(seen), key=lambda k: (means[k], -counts[k], -k))
    share = min(1.0, policy.safety / math.sqrt(time))
    for part, top in ((share, 1.0), (1.0 - share, highest)):
        weights = np.ones(counts.size)
        for k in np.flatnonzero(seen):
            against = two_moment_divergence(means[k], squares[k] / counts[k], means[lead], top)
            weights[k] = math.erfc(math.sqrt(min(counts[k] * against, 700.0)))
        weights[lead] = counts.size - np.delete(weights, lead).sum()
        law += part * weights / counts.size
    return law


@each("inside", INSIDE)
@each(("way", "late"), [(0, 30), (1, 0), (2, 30), (3, 0)])
def test_every_decision_is_the_formula_on_what_is_not_forgotten(inside, way, late):
    make, oracle = WAYS[way]
    policy, probe = make(inside), stream(4, "probe")
    for n_arms, graph in ((3, None), (9, star(9))):
        for t, state, history, select in play(policy, n_arms, 70, 7 + n_arms, late, graph):
            arm = select(state, t, probe)
            counts, means, time = oracle(history, t, n_arms)
            found, average = known(state)
            np.testing.assert_allclose(found, counts, rtol=1e-9, atol=1e-9)
            seen = counts > 1e-6  # of weights far below, rounding is all that is left
            np.testing.assert_allclose(average[seen], means[seen], rtol=1e-6, atol=1e-6)
            if isinstance(inside, IndexPolicy | IMED):
                squares = oracle([(s, k, (x - means[k]) ** 2) for s, k, x in history], t, n_arms)[1]
                indices = [
                    index(inside, n, m, time, counts, means, v)
                    for n, m, v in zip(counts, means, squares, strict=True)
                ]
                best = max(indices)
                assert indices[arm] == best or indices[arm] >= best - 1e-6 * max(1.0, abs(best)), (
                    t,
                    indices,
                    arm,
                )
            elif isinstance(inside, Evidence):
                squares = state.squares / getattr(state.memory, "factor", 1.0)
                expected = oracle([(s, k, (x - means[k]) ** 2) for s, k, x in history], t, n_arms)[1] * counts
                np.testing.assert_allclose(squares[seen], expected[seen], atol=1e-6)
                assert state.sampler.winners[1] == sampler_for("evidence", state).winners[1]
                out = np.zeros(n_arms)
                policy.probabilities(state, t, out)
                assert out.sum() == pytest.approx(1.0)
                assert out[arm] > 0.0
                if graph is None and (seen == (counts > 0.0)).all():
                    law = evidence_law(inside, time, counts, means, squares, state.largest_reward)
                    np.testing.assert_allclose(out, law, atol=1e-5)
            elif isinstance(inside, Boltzmann) and policy.probabilities is not None:
                out = np.zeros(n_arms)
                policy.probabilities(state, t, out)
                blank = math.inf if inside.initial is None else inside.initial
                scores = np.where(counts > 0, np.nan_to_num(means), blank)
                if np.isinf(scores).any():
                    expected = np.isinf(scores) / np.isinf(scores).sum()
                else:
                    weights = np.exp(inside.eta * math.sqrt(time - 1.0) * (scores - scores.max()))
                    expected = weights / weights.sum()
                np.testing.assert_allclose(out, expected, atol=1e-6)


GRIDS = {  # rewards that often add up to the same
    "coins": lambda chance, likely: float(chance.random() < 0.5),
    "fifths": lambda chance, likely: int(chance.random() * 6) / 5.0,
    "thirds": lambda chance, likely: int(chance.random() * 4) / 3.0,
}


@each("inside", INSIDE)
@each("grid", GRIDS)
def test_arms_that_know_the_same_in_a_window_are_alike_to_the_last_bit(inside, grid):
    """Against fractions that are rounded once, where ties are common: no tie is lost to what was known before."""
    policy, out, ties = Windowed(inside, width=12), np.zeros(4), 0
    for t, state, history, select in play(policy, 4, 300, 3, 6, reward_of=GRIDS[grid]):
        select(state, t, stream(t, "probe"))  # brings the window to t
        counts, fractions = windowed_exactly(history, t, 4, 12)
        means = [None if one is None else float(one) for one in fractions]
        seen = [k for k in range(4) if counts[k]]
        equal = [
            (i, j) for i in seen for j in seen if i < j and (counts[i], means[i]) == (counts[j], means[j])
        ]
        ties += len(equal)
        if hasattr(state, "successes"):
            total = [counts[k] * fractions[k] if counts[k] else 0 for k in range(4)]
            assert state.successes.tolist() == [1.0 + float(one) for one in total]
            assert all(state.failures[i] == state.failures[j] for i, j in equal)
        else:
            assert state.observations.tolist() == counts
            assert [state.means[k] for k in seen] == [means[k] for k in seen]
        if isinstance(inside, UCB1 | KLUCB | IMED):
            policy.probabilities(state, t, out)
            known = np.array([0.0 if one is None else one for one in means])
            indices = [
                index(inside, counts[k], known[k], min(t, 12), np.array(counts), known) for k in range(4)
            ]
            expected = [k for k in range(4) if indices[k] == max(indices)]
            assert out.tolist() == [float(k in expected) / len(expected) for k in range(4)]
        elif isinstance(inside, Evidence) and seen:
            lead = max(seen, key=lambda k: (means[k], -counts[k], -k))
            assert state.sampler.winners[1] == lead
        elif isinstance(inside, Boltzmann):
            policy.probabilities(state, t, out)
            assert all(out[i] == out[j] for i, j in equal)
    assert ties >= 10


@pytest.mark.parametrize(
    ("policy", "n_arms"),
    [(UCB1(scale=0.5), 200), (Thompson(), 40), (ABE(eta=1.0, c=1.0, alpha=0.5), 9)],
    ids=str,
)
def test_compiled_is_interpreted_for_many_arms(policy, n_arms):
    environment = Bernoulli(np.linspace(0.1, 0.9, n_arms))
    for wrapped in (Discounted(policy, gamma=0.97), Windowed(policy, width=60)):
        fast = play_replication(wrapped, environment, None, as_checkpoints(20, 400), 1, 0)
        slow = play_replication(wrapped, environment, None, as_checkpoints(20, 400), 1, 0, interpreted=True)
        assert np.array_equal(fast.regret, slow.regret)
        assert same_states(fast.state, slow.state)


@pytest.mark.parametrize("policy", [UCB1(), KLUCB()], ids=str)
@pytest.mark.parametrize("wrap", [lambda p: Discounted(p, gamma=0.995), lambda p: Windowed(p, width=300)])
def test_a_tournament_finds_what_a_scan_finds(policy, wrap, monkeypatch):
    """Many arms through the structure and through the scan: the same arms, where there are no ties."""
    policy, played = wrap(policy), []
    for few in (5, 10**6):
        for table in (FEW, FEW_FADING):
            monkeypatch.setitem(table, policy.policy.law, few)
        rewards, arms = stream(3, "rewards"), []
        setting = Setting(100)
        select, update = policy.kernels()
        state, rng = policy.start(setting), stream(1, "play")
        assert isinstance(state.sampler, Tournament) == (few == 5)
        for k in range(100):  # every arm once, so that no two tie
            update(state, 1, k, k, rewards.random(), rng)
        for t in range(2, 900):
            arm = select(state, t, rng)
            arms.append(arm)
            update(state, t, arm, arm, 0.5 * rewards.random() + 0.5 * (arm % 7 == t // 300), rng)
            if any(state.observations == 0.0):
                for k in np.flatnonzero(state.observations == 0.0):
                    update(state, t, int(k), int(k), rewards.random(), rng)
        played.append(arms)
    assert played[0] == played[1]


def test_without_forgetting_it_is_the_policy_itself():
    options = {"horizon": 400, "replications": 2, "seed": 3}
    environment = Bernoulli([0.2, 0.5, 0.7])
    for policy in (UCB1(scale=0.5), KLUCB(), Boltzmann(eta=1.0), Thompson()):
        plain = simulate(policy, environment, **options).regret[0]
        whole = play_all(Windowed(policy, width=1000), environment, policy, options)
        assert np.array_equal(plain, whole), policy


def play_all(wrapped, environment, policy, options):
    """Replications of a wrapped policy on the random numbers of the policy inside."""
    from unittest import mock

    import abex.simulation.replication as module

    def named(seed, replication, role, text):
        return stream(seed, replication, role, repr(policy))

    with mock.patch.object(module, "stream", named):
        return simulate(wrapped, environment, workers=1, **options).regret[0]


@pytest.mark.parametrize(
    "policy", [Discounted(UCB1(scale=0.5), gamma=0.995), Windowed(Thompson(), width=200)], ids=str
)
def test_a_changed_world_is_noticed_and_the_plain_policy_lags(policy):
    from abex import Switching

    environment = Switching([0.1, 0.9], period=2000)
    options = {"horizon": 20_000, "replications": 20, "seed": 2}
    forgets = simulate(policy, environment, **options).regret[0, :, -1]
    plain = simulate(policy.policy, environment, **options).regret[0, :, -1]
    assert forgets.mean() < 0.75 * plain.mean()


@pytest.mark.parametrize("policy", [Discounted(ABE(eta=1.0), gamma=0.9), Windowed(KLUCB(c=3.0), width=7)])
def test_texts_within_texts_come_back(policy):
    assert parse_policy(repr(policy)) == policy
    assert parse_policy(str(policy)) == policy
    assert Discounted("UCB1") == Discounted(UCB1())


@each(
    ("text", "message"),
    [
        ("Discounted(UBC1)", "did you mean 'UCB1'"),
        ("Discounted(UCB1, gama=0.9)", "did you mean 'gamma'"),
        ("Discounted(UCB1, gamma=1.0)", "gamma must be"),
        ("Windowed(UCB1, width=0)", "width must be"),
        ("Discounted(3)", "policies must be values"),
        ("Discounted(Exp3)", "statistics can be forgotten"),
        ("Windowed(Discounted(UCB1))", "statistics can be forgotten"),
        ("Windowed(policy=__import__('os'))", "cannot read the policy"),
        ("Windowed(" * 500 + "UCB1" + ")" * 500, "cannot read the policy"),
    ],
)
def test_what_cannot_forget_is_refused_in_one_sentence(text, message):
    with pytest.raises(UserError) as caught:
        parse_policy(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_window_without_room_loses_the_oldest_first():
    player = Player(Windowed(UCB1(), width=5), n_arms=4, seed=1)
    for _ in range(
        4
    ):  # four observations a step where there is room for six: the step before leaves as a whole
        decision = player.decide()
        others = {k: 0.5 for k in range(4) if k != decision.arm}
        player.update(decision, 1.0, also=others)
        assert player._state.state.observations.sum() == 4


@pytest.mark.parametrize("wrap", [Discounted, Windowed, Restarting], ids=lambda wrap: wrap.__name__)
def test_the_schedule_of_abe_goes_on_whatever_is_forgotten(wrap):
    """It counts slots, not what is known: that of plain ABE to which the same happens, on a graph too."""
    plain = ABE(eta=1.0, c=1.0, alpha=0.5)
    wrapped = wrap(plain)
    for graph in (None, star(5)):
        setting = Setting(5, None, graph)
        select, update = wrapped.kernels()
        state, alone, rng = wrapped.start(setting), plain.start(setting), stream(3, "play")
        for t in range(1, 400):
            arm = select(state, t, rng)
            for seen in [arm] if graph is None else [*(int(k) for k in graph.out(arm) if k != arm), arm]:
                update(state, t, arm, seen, 0.5, rng)
                plain.update(alone, t, arm, seen, 0.5, rng)
            for name in ("iteration", "due", "slots", "explored"):
                assert getattr(state, name) == getattr(alone, name)
            assert repr(state.xi) == repr(alone.xi)
        assert state.iteration > 3


def test_a_window_that_was_saved_adds_up_to_the_same(tmp_path):
    player, chance = Player(Windowed(KLUCB(), width=15), n_arms=3, seed=1), stream(2, "rewards")
    for _ in range(50):
        player.update(player.select(), GRIDS["thirds"](chance, True))
    player.save(tmp_path / "player.json")
    one, two = (made._state.state.memory for made in (player, Player.load(tmp_path / "player.json")))
    assert one.counts.sum() == 16  # the oldest leaves at the next decision
    assert all(np.array_equal(getattr(one, sums), getattr(two, sums)) for sums in ("counts", "high", "low"))


def test_arms_that_go_take_what_was_observed_of_them_along():
    for policy in (
        Windowed(UCB1(), width=50),
        Windowed(Thompson(), width=50),
        Discounted(KLUCB(), gamma=0.9),
    ):
        player = Player(policy, n_arms=3, seed=1)
        for _ in range(30):
            player.update(player.select(), 0.5)
        player.remove_arm(1)
        player.add_arm()
        for _ in range(200):
            player.update(player.select(), 0.25)
        player.select()
        counts, _ = known(player._state.state)
        assert counts.sum() == pytest.approx(50 if isinstance(policy, Windowed) else 10.0, rel=1e-6)


def test_a_window_goes_on_where_it_was_when_an_arm_comes():
    player = Player(Windowed(UCB1(), width=10), n_arms=3, seed=1)
    for _ in range(200):
        player.update(player.select(), 0.5)
    player.add_arm()
    player.select()
    counts, _ = known(player._state.state)
    assert counts.sum() == 10.0


def test_decisions_made_at_once_are_steps_of_the_discounted_time():
    player = Player(Discounted(UCB1(), gamma=0.9), n_arms=6, seed=1)
    for _ in range(7):
        player.update(player.select(), 0.5)
    player.select(5)
    player.select()
    assert player._state.state.memory.total == pytest.approx(sum(0.9**age for age in range(13)))


class MeansOfMine(Learned):
    """What a policy of somebody else knows, and a field that follows from it."""

    observations: Count
    means: Mean
    weighed: np.ndarray  # (K,), observations times means
    initial: float


@kernel
def learn_mine(state, arm, reward, weight):
    """As others do."""
    learn_mean(state, arm, reward, weight)
    state.weighed[arm] = state.observations[arm] * state.means[arm]


@dataclass(frozen=True)
class Mine(Learner):
    """A policy of somebody else: the largest sum of rewards."""

    learn = staticmethod(learn_mine)

    def start(self, setting):
        """Nothing observed."""
        observations, means, weighed = np.zeros((3, setting.n_arms))
        return MeansOfMine(observations=observations, means=means, weighed=weighed, initial=0.0)

    @staticmethod
    @kernel
    def select(state, t, rng):
        """The largest sum, or any arm."""
        return int(state.weighed.argmax()) if t % 3 < 2 else int(rng.random() * state.means.size)


@pytest.mark.parametrize(("way", "late"), [(0, 30), (1, 0), (2, 30), (3, 0)])
def test_a_policy_of_your_own_forgets_with_all_that_follows_from_what_it_knows(way, late):
    make, oracle = WAYS[way]
    for t, state, history, select in play(make(Mine()), 4, 200, 5, late):
        select(state, t, stream(t, "probe"))
        counts, means, _ = oracle(history, t, 4)
        np.testing.assert_allclose(state.observations, counts, rtol=1e-9, atol=1e-9)
        seen = counts > 1e-6
        np.testing.assert_allclose(state.weighed[seen], (counts * means)[seen], rtol=1e-6, atol=1e-9)
