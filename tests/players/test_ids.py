"""Ids of decisions, and the lives of a player: restarts, copies, pickles, forks."""

import copy
import os
import pickle
import signal
import threading
import time
import uuid

import pytest

from abex import ABE, UCB1, Exp3, Player, Thompson, Uniform, UserError
from abex.players import ids
from tests.fuzz.players import FuzzedOwn
from tests.players.test_player import snapshot
from tests.waiting import PATIENCE


def test_ids_are_uuids_that_sort_by_time():
    player = Player(Uniform(), 3, seed=1)
    ids = [player.decide().id for _ in range(2_000)]
    assert ids == sorted(set(ids))
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert abs((uuid.UUID(ids[-1]).int >> 80) - time.time() * 1000) < 3_600_000


def test_ids_increase_when_the_clock_is_set_back(monkeypatch):
    player = Player(Uniform(), 3, seed=1)
    first = player.decide().id
    monkeypatch.setattr(ids.time, "time_ns", lambda: 10**15)
    assert player.decide().id > first


def test_players_of_one_seed_choose_alike_under_different_ids():
    """What is played is a function of the seed alone, ids are of the system's randomness."""
    workers = [Player(Thompson(), 20, seed=7) for _ in range(2)]
    decisions = [[worker.decide() for _ in range(200)] for worker in workers]
    assert [d.arm for d in decisions[0]] == [d.arm for d in decisions[1]]
    assert len({d.id for made in decisions for d in made}) == 400


def test_a_life_that_has_used_up_its_numbers_is_followed_by_another():
    player = Player(Uniform(), 2, seed=1)
    player._life.made = 2**ids.COUNTER_BITS - 10
    decisions = [player.decide() for _ in range(300)]
    assert len({d.id for d in decisions}) == 300
    assert len({d.id[ids.LIFE_AT :] for d in decisions}) == 2
    assert all(ids.is_id(d.id) for d in decisions)
    assert all(player.update(d, 1.0) for d in decisions)
    assert not any(player.update(d, 1.0) for d in decisions)


def test_decisions_lost_in_a_crash_are_refused_by_name(tmp_path):
    """Saved, played on, crashed, loaded: what was decided after the save is nobody's, whatever arm has its number now."""
    path = tmp_path / "player.json"
    player = Player(UCB1(), n_arms=20, seed=3)
    rewarded, waiting = player.decide(), player.decide()
    player.update(rewarded, 1.0)
    player.save(path)
    lost = [player.decide() for _ in range(19)]
    for _ in range(2):  # the second loading finds the decisions of the first one lost as well
        player = Player.load(path)
        again = [player.decide() for _ in range(19)]
        assert not {d.id for d in again} & {d.id for d in lost}
        before = snapshot(player)
        for decision in lost:
            with pytest.raises(UserError, match=f"{decision.id}.* was never made by this player"):
                player.update(decision, 1.0)
        assert snapshot(player) == before
        lost += again
    with pytest.raises(UserError, match="made after the save or copy"):
        player.update(lost[0], 1.0)
    with pytest.raises(UserError, match="another one made it, or one that was lost"):
        player.update(lost[19], 1.0)
    assert not player.update(rewarded, 1.0)
    assert player.update(waiting, 1.0)
    assert not player.update(waiting, 1.0)


def test_a_long_chain_of_restarts_knows_what_was_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.players.state.MOST_LIVES", 5)
    path = tmp_path / "player.json"
    player = Player(Uniform(), n_arms=3, seed=3)
    decisions = []
    for _ in range(12):
        decisions.append(player.decide())
        player.save(path)
        player = Player.load(path)
    assert [player.update(d, 1.0) for d in decisions] == [True] * 12
    player.decide()
    player.save(path)
    player = Player.load(path)
    assert len(player._state.pending.lives) == 5
    assert not player.update(decisions[-1], 1.0)
    with pytest.raises(UserError, match="never made by this player"):
        player.update(decisions[0], 1.0)


def test_clicks_are_rewards():
    player = Player(Thompson(), n_arms=2, seed=1)
    assert player.update(0, True)
    assert player.update(1, False, also={0: True})
    assert player._state.state.successes.tolist() == [3.0, 1.0]
    assert player._state.state.failures.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "make", [lambda p: p.copy(), copy.copy, copy.deepcopy], ids=["method", "copy", "deepcopy"]
)
def test_copies_are_independent(make):
    player = Player(Exp3(gamma=0.3), n_arms=3, seed=1)
    waiting = player.decide()
    twin = make(player)
    assert snapshot(twin) == snapshot(player)
    ours, theirs = [[one.decide() for _ in range(9)] for one in (player, twin)]
    assert [d.arm for d in ours] == [d.arm for d in theirs]
    assert not {d.id for d in ours} & {d.id for d in theirs}
    before = snapshot(twin)
    assert player.update(waiting, 1.0)
    player.update(0, 1.0)
    assert snapshot(twin) == before
    assert twin._steps == player._steps == 10
    with pytest.raises(UserError, match="never made by this player"):
        twin.update(ours[0], 1.0)
    assert twin.update(waiting, 1.0)


def test_pickles_go_through_the_checked_form():
    for policy in (ABE(eta=1.0), FuzzedOwn()):
        player = Player(policy, n_arms=8, seed=2)
        for _ in range(20):
            player.update(player.select(), 0.5)
        player.decide()
        pickled = pickle.dumps(player)
        twin = pickle.loads(pickled)
        assert snapshot(twin) == snapshot(player)
        assert [twin.select() for _ in range(9)] == [player.select() for _ in range(9)]
    restore, (policy, text, compiled) = player.__reduce__()
    with pytest.raises(UserError, match="cannot load the pickled player"):
        restore(policy, text.replace('"steps": 30', '"steps": 31'), compiled)


def read_all(pipe, seconds=PATIENCE):
    """What a child writes, or nothing if it is stuck."""
    import select

    found = b""
    while select.select([pipe], [], [], seconds)[0]:
        part = os.read(pipe, 65536)
        if not part:
            break
        found += part
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_are_independent_players():
    """No child is stuck although threads play while it is made; arms and ids of parent and children differ."""
    player = Player(Uniform(), n_arms=1000, seed=1)
    early = player.decide()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            player.update(player.decide(), 0.5)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = []
    for _ in range(6):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                known = player.update(early, 1.0)
                decisions = [player.decide() for _ in range(20)]
                answer = f"{known};" + ";".join(f"{d.id},{d.arm}" for d in decisions)
                os.write(send, answer.encode())
            finally:
                os._exit(0)
        os.close(send)
        answers.append(read_all(receive).decode())
        os.close(receive)
        if not answers[-1]:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not answers[-1]:
            break
    stop.set()
    for thread in threads:
        thread.join()
    assert all(answers), "a child was stuck"
    ours = [player.decide() for _ in range(20)]
    answers.append("True;" + ";".join(f"{d.id},{d.arm}" for d in ours))
    assert {answer.split(";")[0] for answer in answers} == {"True"}
    made = [[one.split(",") for one in answer.split(";")[1:]] for answer in answers]
    assert len({name for one in made for name, _ in one}) == 7 * 20
    assert len({tuple(arm for _, arm in one) for one in made}) == 7
    assert player.update(early, 1.0)
    with pytest.raises(UserError, match="never made by this player"):
        player.update(made[0][0][0], 1.0)


def test_waiting_decisions_are_found_by_arm_and_forgotten_in_order():
    player = Player(Uniform(), n_arms=5, seed=1, max_pending=50)
    decisions = [player.decide() for _ in range(200)]
    assert player.pending() == decisions[-50:]
    latest = {}
    for decision in decisions[-50:]:
        latest[decision.arm] = decision
    for arm, decision in latest.items():
        assert player.update(arm, 1.0)
        assert not player.update(decision, 1.0)
    player.remove_arm(2)
    assert all(waiting.arm != 2 for waiting in player.pending())
    listed = {name for names in player._state.pending._by_arm.values() for name in names}
    assert listed == set(player._state.pending)


def test_a_reward_from_elsewhere_for_an_arm_without_probability_stays_finite():
    from abex import Exp3PlusPlus

    player = Player(Exp3PlusPlus(), n_arms=3, seed=1)
    player.update(player.decide(), 0.5)
    tried = int(player._state.state.pulls.argmax())
    player.select()
    player.update(tried, 0.0)
    assert player._state.state.losses.max() < 10.0
