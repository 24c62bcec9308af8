"""Events as rows: what is written is read again, what is forged is refused, and applying never fails."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex import Player
from abex.players.decision_ids import Life
from abex.players.definitions import replica_text, template_of
from abex.players.events import ArmAdded, ArmRemoved, ArmRenamed, Decided, Expired, Rewarded, apply
from abex.players.journal_rows import Row, event_of, row_of
from abex.players.saving import DAMAGE
from abex.players.seeding import SequenceStream
from abex.players.terms import Terms


def played(policy="Exp3(gamma=0.2)", **options):
    """A replica with decisions that wait."""
    player = Player(policy, seed=1, **({"n_arms": 3} | options))
    decisions = [player.decide() for _ in range(5)]
    return player._replica, [decision.id for decision in decisions]


def test_every_event_is_read_as_it_was_written():
    replica, names = played(arms=["a", "b", "c"])
    memory = replica.pending[names[0]].memory
    events = [
        Decided(Life().next_id(), 10**12, 1, 7, memory, 0.1 + 0.2, 3),
        Rewarded("e2", 10**12, names[0], None, 1 / 3, {2: 0.1, 0: 1.0}),
        Rewarded("e3", 10**12, None, 2, 0.0, {}),
        Expired("e4", 10**12, 10**12 - 5),
        ArmAdded("e5", 10**12, "d"),
        ArmAdded("e6", 10**12, None),
        ArmRemoved("e7", 10**12, 1),
        ArmRenamed("e8", 10**12, 1, "bb"),
    ]
    for event in events:
        again = event_of(row_of(event), replica, template_of(replica))
        assert repr(again) == repr(event)
        assert type(again) is type(event)


def test_a_decision_that_comes_again_changes_nothing():
    replica, _ = played("UCB1")
    event = Decided(Life().next_id(), 10**12, 1, 6, (), None)
    apply(replica, event, Terms(), None)
    text = replica_text(replica, 0)
    apply(replica, event, Terms(), None)
    assert replica_text(replica, 0) == text
    assert replica.steps == 6


def test_random_numbers_belong_to_events():
    draws = {(key, seq): SequenceStream(key).at(seq).random() for key in (1, 2) for seq in range(50)}
    assert len(set(draws.values())) == 100
    stream = SequenceStream(1)
    assert all(stream.at(seq).random() == draws[1, seq] for seq in reversed(range(50)))
    numbers = np.array([stream.at(seq).random() for seq in range(4000)])
    assert abs(numbers.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / 4000)
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4.5 / np.sqrt(4000)


NUMBERS = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.sampled_from([2**48, 2**62, 2**63, -(2**63), 0.5, 1.5, float("nan"), "x", True]),
)
DETAILS = st.one_of(
    st.none(),
    st.sampled_from(
        [
            "{",
            "[]",
            "7",
            "null",
            "{}",
            '{"t": 1}',
            '{"t": -1, "memory": []}',
            '{"label": 7}',
            '{"label": [1]}',
        ]
    ),
    st.dictionaries(
        st.sampled_from(["t", "memory", "also", "label", "observed"]),
        st.one_of(
            st.integers(),
            st.text(max_size=3),
            st.lists(st.integers(0, 3), max_size=2),
            st.dictionaries(st.text("0123456789-x", max_size=3), st.floats(-1, 2)),
        ),
    ).map(json.dumps),
)
KINDS = st.sampled_from(
    ["decision", "reward", "expiry", "arm added", "arm removed", "arm renamed", "nonsense", ""]
)


@pytest.mark.parametrize("policy", ["Exp3(gamma=0.2)", "UCB1"])
@given(data=st.data())
@settings(max_examples=300)
def test_forged_rows_are_refused_or_harmless(policy, data):
    replica, names = played(
        policy, **data.draw(st.sampled_from([{}, {"n_arms": None, "arms": ["a", "b", "c"]}]))
    )
    for _ in range(3):
        row = Row(
            data.draw(KINDS),
            data.draw(st.sampled_from(["e", "", Life().next_id(), None, 7])),
            data.draw(NUMBERS),
            data.draw(st.sampled_from([None, *names, "x", 7])),
            data.draw(NUMBERS),
            data.draw(NUMBERS),
            data.draw(NUMBERS),
            data.draw(DETAILS),
        )
        try:
            event = event_of(row, replica, template_of(replica))
        except DAMAGE:
            continue
        apply(replica, event, Terms(), SequenceStream(1).at(1))
    json.loads(replica_text(replica, 0))
    arm, _ = replica.draw(replica.steps + 1, np.random.default_rng(1))
    assert 0 <= arm < replica.n_arms
