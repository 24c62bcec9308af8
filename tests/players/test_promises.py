"""The same events, the same state: every policy, through snapshots and files, arms that come and go, changes and expiry."""

from datetime import timedelta

import numpy as np
import pytest

from abex import Evidence, Player
from abex.graphs import erdos_renyi
from abex.kinds import kept_with_decisions, saved, weighed_by, written
from abex.players.events import ArmAdded, ArmRemoved, Decided, Expired, Rewarded
from abex.players.player_file import (
    Definition,
    definition_text,
    from_snapshot,
    player_text,
    read_player,
    snapshot_of,
    state_text,
    written_state,
)
from abex.players.shared_player import SequenceStream
from abex.policies.attribution import can_weigh
from abex.policies.discounted import Discounted
from abex.policies.learner import Learner
from abex.policies.restarting import Restarting
from abex.policies.windowed import Windowed
from tests.each import each, each_group
from tests.examples import all_examples, by_class, examples, ours

EXAMPLES = all_examples()
INSIDE = [examples(cls)[0] for cls in ours() if issubclass(cls, Learner)]
FORGETTING = [
    around
    for policy in INSIDE
    for around in (
        Windowed(policy, width=40),
        Discounted(policy, gamma=0.97),
        Restarting(policy, exploration=0.1),
    )
]
GROUPS = by_class([*EXAMPLES, *FORGETTING])
ARMS, STEPS = 4, 150
MINUTE = 60_000


def new_player(policy, **options):
    """An interpreted player whose decisions expire after two minutes."""
    graph = erdos_renyi(ARMS, 0.4, seed=1) if policy.needs_graph else None
    silence = "window" if graph is None and can_weigh(policy) else "expire"
    options = {"horizon": 400, silence: timedelta(minutes=2), "unrewarded": 0.0} | options
    return Player(policy, ARMS, graph=graph, compiled=False, seed=3, **options)


def reward_at(step, arm, rng):
    """A coin whose best arm changes in the middle; now and then a fraction."""
    best = arm % 3 == (0 if step < STEPS // 2 else 1)
    return float(rng.random()) if step % 7 == 0 else float(rng.random() < (0.9 if best else 0.1))


class Replay:
    """A replica that takes notice of events as one of a shared player does."""

    def __init__(self, definition, replica, seq=0):
        self.definition, self.replica, self.seq = definition, replica, seq
        self.learning = SequenceStream(definition.key)

    def follow(self, event):
        self.seq += 1
        return self.replica.apply(event, self.learning.at(self.seq))

    def text(self):
        return state_text(self.replica, self.seq)


def history(definition):
    """Events of a player with this definition: decisions and late rewards, a change, expiry, arms that come and go."""
    one, rng = Replay(definition, definition.replica(False)), np.random.default_rng(5)
    player, events, waiting = new_player(one.replica.policy), [], []

    def happen(event):
        events.append(event)
        return one.follow(event)

    for step in range(STEPS):
        moment = 10**12 + step * MINUTE // 10
        replica, name = one.replica, player._others.next_id()
        if step % 23 == 11:
            happen(Expired(name, moment, moment - 2 * MINUTE))
        comes_and_goes = replica.policy.resizable and not replica.policy.needs_graph
        if comes_and_goes and step in (40, 90):
            happen(ArmAdded(name, moment, None))
        if comes_and_goes and step in (55, 120):  # the one that is observed most, and another
            most = replica.tallies.observations.argmax() if step == 55 else 0
            happen(ArmRemoved(name, moment, int(replica.arms.numbers[most])))
        place, memory = replica.draw(replica.steps + 1, rng)
        arm = int(replica.arms.numbers[place])
        decision = player._life.next_id(moment)
        happen(Decided(decision, moment, arm, replica.steps + 1, memory, None))
        waiting.append((decision, arm))
        while waiting and rng.random() < 0.65:
            decision, arm = waiting.pop(rng.integers(len(waiting)))
            also = {}
            if step % 5 == 0:
                also = {int(k): 1.0 for k in replica.arms.numbers[:2] if k != arm}
            happen(Rewarded(name, moment, decision, None, reward_at(step, arm, rng), also))
        if step % 13 == 4:
            happen(Rewarded(name, moment, None, arm, reward_at(step, arm, rng), {}, f"told {step}"))
    return events


@each_group("policy", GROUPS)
def test_a_replica_from_a_snapshot_goes_on_as_a_serial_replay(policy):
    player = new_player(policy)
    definition = Definition(definition_text(player._state), "the player")
    events = history(definition)
    serial, opened = Replay(definition, definition.replica(False)), []
    at = {len(events) * part // 10 for part in range(1, 10)}
    for event in events:
        for one in (serial, *opened):
            one.follow(event)
        if serial.seq in at:
            kept = snapshot_of(serial.replica, serial.seq)
            opened.append(Replay(definition, *from_snapshot(definition, kept, False)))
            assert opened[-1].text() == serial.text()
    assert {one.text() for one in opened} == {serial.text()}
    if policy.probabilities is not None:
        step = serial.replica.steps + 1
        expected = serial.replica.probabilities(step)
        for one in opened:
            assert one.replica.probabilities(step) == pytest.approx(expected, abs=1e-12)


@each_group("policy", GROUPS)
def test_a_loaded_player_goes_on_as_the_one_that_was_saved(policy):
    now = [10**9]
    player = new_player(policy, clock=lambda: now[0])
    twin, waiting, rng = player.copy(), [], np.random.default_rng(6)
    comes_and_goes = policy.resizable and not policy.needs_graph
    for step in range(STEPS):
        now[0] += 6 if step % 23 != 11 else 200
        if comes_and_goes and step in (40, 90):
            assert player.add_arm() == twin.add_arm()
        if comes_and_goes and step in (55, 120):
            most = player.arms[player._state.tallies.observations.argmax() if step == 55 else 0]
            player.remove_arm(most)
            twin.remove_arm(most)
        if step % 17 == 9 or step in (41, 56, 91, 121):
            player_text(player)  # who saves makes samplers anew, as who loads does
            twin = read_player(player_text(twin), "the player", False, lambda: now[0])
        pair = player.decide(), twin.decide()
        assert pair[0].arm == pair[1].arm
        waiting.append(pair)
        while waiting and rng.random() < 0.65:
            ours, theirs = waiting.pop(rng.integers(len(waiting)))
            reward = reward_at(step, ours.arm, rng)
            assert player.update(ours, reward) == twin.update(theirs, reward)
        if step % 13 == 4:
            assert player.update(player.arms[0], 1.0) == twin.update(twin.arms[0], 1.0)
    ours, theirs = (read_player(player_text(one), "the player", False, one._clock) for one in (player, twin))
    assert ours._state.tallies.expired > 0
    assert written(saved(ours._state.state)) == written(saved(theirs._state.state))
    assert written_state(ours._state)["tallies"] == written_state(theirs._state)["tallies"]
    assert ours._steps == theirs._steps


def test_who_opens_evidence_from_a_snapshot_finds_the_same_change(tmp_path):
    url, rng = f"sqlite:///{tmp_path}/shop.db?synchronous=normal", np.random.default_rng(1)

    def play(player, best, steps):
        for _ in range(steps):
            decision = player.decide()
            player.update(decision.id, float(rng.random() < (0.9 if decision.arm == best else 0.1)))

    first = Player.open(url, "shop", Evidence(), n_arms=3, seed=1, snapshot_every=100)
    play(first, 1, 300)
    first.flush()
    first.snapshot()
    with Player.open(url, "shop", seed=2) as second:
        play(first, 2, 300)
        first.flush()
        second.refresh()
        assert first.report() == second.report() == {"changes found": 1.0}
        assert first.text() == second.text()
    first.close()


@each_group("policy", GROUPS)
@each("own", [True, False])
def test_rows_told_from_elsewhere_are_steps_of_the_policys_life(policy, own):
    """The state is that of a player that lived these steps and chose these arms."""
    player = new_player(policy, expire=None, window=None)
    if not own and kept_with_decisions(player._state.state):  # it weighs by what it drew itself
        return
    lived, told = player._state, new_player(policy, expire=None, window=None)._state
    lived.draws_leave_state = told.draws_leave_state = True
    rng = np.random.default_rng(7)
    for step in range(1, 121):
        arm, memory = lived.draw(step, rng)
        arm = arm if own else int(rng.integers(ARMS))
        reward, name = reward_at(step, arm, rng), player._life.next_id(10**12 + step)
        lived.apply(Decided(name, 10**12, arm, step, memory, None), None)
        lived.apply(Rewarded(name, 10**12, name, None, reward, {}), np.random.default_rng(step))
        key = f"row {step}" if step % 2 else None
        event = Rewarded(name, 10**12, None, arm, reward, {}, key)
        assert told.apply(event, np.random.default_rng(step)) is True
        if key is not None:  # counts once
            assert told.apply(event, np.random.default_rng(step)) is False
    assert lived.steps == told.steps == lived.decisions == 120
    assert told.decisions == 0
    assert told.policy.report(told.state) == lived.policy.report(lived.state)
    field = weighed_by(told.state)
    if field is None or getattr(told.state, field).size == ARMS:
        assert written(saved(told.state)) == written(saved(lived.state))
    else:  # a draw knows the probability of one arm, and to the last bit but one
        for name, value in saved(told.state).items():
            assert value == pytest.approx(getattr(lived.state, name), rel=1e-12), name
    if policy.probabilities is not None:
        assert told.probabilities(121) == pytest.approx(lived.probabilities(121), rel=1e-12)


def test_decisions_and_steps_from_elsewhere_are_kept_apart_and_saved():
    player = Player("Boltzmann", n_arms=2, seed=0)
    player.update(player.select(), 1.0)
    player.update_many([(0, 1.0), (1, 0.0), (0, 1.0)])
    again = read_player(player_text(player), "the player", False)
    for one in (player, again, player.copy()):
        assert (one._steps, one._state.decisions) == (4, 1)
        assert "after 1 decisions" in repr(one)
        assert ", 1 decision, 1 rewarded" in str(one.summary())
        assert one.pending() == []
    assert player_text(again) == player_text(player)
