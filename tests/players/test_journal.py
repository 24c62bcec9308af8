"""Events as bytes: what is written is read again, what is forged is refused, and applying never fails."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex import Player
from abex.players.events import (
    ArmAdded,
    ArmRemoved,
    ArmRenamed,
    Batch,
    Decided,
    Expired,
    Rewarded,
    decode,
    encode,
)
from abex.players.ids import Life
from abex.players.player_file import DAMAGE, state_text, template_of
from abex.players.shared_player import SequenceStream


def played(policy="Exp3(gamma=0.2)", **options):
    """A replica with decisions that wait."""
    player = Player(policy, seed=1, **({"n_arms": 3} | options))
    decisions = [player.decide() for _ in range(5)]
    return player._state, [decision.id for decision in decisions]


def test_every_event_is_read_as_it_was_written():
    replica, names = played(arms=["a", "b", "c"])
    memory = replica.pending[names[0]].memory
    events = [
        Decided(Life().next_id(), 10**12, 1, 7, memory, 0.1 + 0.2, 3),
        Decided(Life().next_id(), 10**12, 1, 7, memory, 0.1, 3, {2: 1 / 3}, "ann", "k", Batch("b", 2)),
        Rewarded("e2", 10**12, names[0], None, 1 / 3, {2: 0.1, 0: 1.0}),
        Rewarded("e3", 10**12, None, 2, 0.0, {}),
        Expired("e4", 10**12, 10**12 - 5),
        ArmAdded("e5", 10**12, "d"),
        ArmAdded("e6", 10**12, None),
        ArmRemoved("e7", 10**12, 1),
        ArmRenamed("e8", 10**12, 1, "bb"),
    ]
    for event in events:
        again = decode(encode(event))
        replica.check(again, template_of(replica))
        assert repr(again) == repr(event)
        assert type(again) is type(event)


def test_a_decision_that_comes_again_changes_nothing():
    replica, _ = played("UCB1")
    event = Decided(Life().next_id(), 10**12, 1, 6, (), None)
    replica.apply(event, None)
    text = state_text(replica, 0)
    replica.apply(event, None)
    assert state_text(replica, 0) == text
    assert replica.steps == 6


def test_random_numbers_belong_to_events():
    draws = {(key, seq): SequenceStream(key).at(seq).random() for key in (1, 2) for seq in range(50)}
    assert len(set(draws.values())) == 100
    stream = SequenceStream(1)
    assert all(stream.at(seq).random() == draws[1, seq] for seq in reversed(range(50)))
    numbers = np.array([stream.at(seq).random() for seq in range(4000)])
    assert abs(numbers.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / 4000)
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4.5 / np.sqrt(4000)


def test_an_event_that_stands_in_the_journal_twice_counts_once():
    """A connection broke, and what was sent by it arrived after it had been sent again."""
    replica, names = played("UCB1")
    replica.draws_leave_state = True
    events = [
        Rewarded("e1", 10**12, None, 2, 0.5, {}),
        Rewarded("e2", 10**12, names[0], None, 1.0, {}),
        ArmAdded("e3", 10**12, None),
        Expired("e4", 10**12, 10**12 - 5),
    ]
    for event in events:
        replica.apply(event, None)
    text = state_text(replica, 0)
    for event in events:
        replica.apply(event, None)
    assert state_text(replica, 0) == text
    assert replica.n_arms == 4


ODD = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.text(max_size=3),
    st.sampled_from(
        [2**48, 2**62, 2**63, -(2**63), 10**30, 0.5, 1.5, True, [], {}, {"0": 0.5}, ["b", 1], "9" * 300]
    ),
)


@pytest.mark.parametrize("policy", ["Exp3(gamma=0.2)", "UCB1"])
@given(data=st.data())
@settings(max_examples=300)
def test_forged_events_are_refused_or_harmless(policy, data):
    replica, names = played(
        policy, **data.draw(st.sampled_from([{}, {"n_arms": None, "arms": ["a", "b", "c"]}]))
    )
    memory = replica.pending[names[0]].memory
    for _ in range(3):
        event = data.draw(
            st.sampled_from(
                [
                    Decided(Life().next_id(), 10**12, 1, 7, memory, 0.5, 3),
                    Rewarded("e", 10**12, names[0], None, 0.5, {2: 0.1}),
                    Rewarded("e", 10**12, None, 1, 0.5, {}),
                    Expired("e", 10**12, 5),
                    ArmAdded("e", 10**12, None),
                    ArmAdded("e", 10**12, "d"),
                    ArmRemoved("e", 10**12, 0),
                    ArmRenamed("e", 10**12, 0, "x"),
                ]
            )
        )
        body = json.loads(encode(event))
        for _ in range(data.draw(st.integers(1, 2))):
            body[data.draw(st.sampled_from([*body, "decision", "also", "unit", "batch", "nonsense"]))] = (
                data.draw(ODD)
            )
        try:
            event = decode(json.dumps(body).encode())
            replica.check(event, template_of(replica))
        except DAMAGE:
            continue
        replica.apply(event, SequenceStream(1).at(1))
    json.loads(state_text(replica, 0))
    arm, _ = replica.draw(replica.steps + 1, np.random.default_rng(1))
    assert 0 <= arm < replica.n_arms
