"""The player: late rewards, batches, threads, arms that come and go, exact resume, and every wrong input."""

import json
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex import (
    ABE,
    UCB1,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Exp3,
    Exp3IX,
    Exp3P,
    Player,
    Thompson,
    Uniform,
    UserError,
    simulate,
)
from abex.kinds import saved as saved_record
from abex.kinds import written
from abex.players import player_file, policy_runner
from abex.players.policy_runner import reads_last
from abex.policies.policy import Setting
from tests.each import each


def snapshot(player):
    """All that decides what the player does next."""
    waiting = repr([(name, one.t, one.arm, one.memory) for name, one in player._state.pending.items()])
    return (
        written(saved_record(player._state.state)),
        player._steps,
        repr(player._rng.bit_generator.state),
        waiting,
    )


def test_rewards_may_come_late_and_out_of_order():
    player = Player(UCB1(), n_arms=4, seed=1)
    decisions = [player.decide() for _ in range(4)]
    assert len({d.id for d in decisions}) == 4
    for decision in reversed(decisions):
        assert player.update(decision.id, 0.25)
    assert player.pending() == []


def test_a_repeated_reward_changes_nothing():
    player = Player(Thompson(), n_arms=2, seed=1)
    decision = player.decide()
    assert player.update(decision, 1.0)
    before = snapshot(player)
    assert not player.update(decision, 1.0)
    assert not player.update(decision.id, 0.0)
    assert snapshot(player) == before


@each("wrong", ["nonsense", "-1", "00000000-1", "-", "ffffffff-99999999999"])
def test_a_word_that_is_neither_arm_nor_id_is_an_error_and_changes_nothing(wrong):
    player = Player(Thompson(), n_arms=2, seed=1)
    player.decide()
    before = snapshot(player)
    with pytest.raises(UserError, match=r"there is no arm .*: arms are 0 to 1"):
        player.update(wrong, 1.0)
    assert snapshot(player) == before


def test_ids_of_another_player_are_unknown():
    first, second = Player(Uniform(), 2, seed=1), Player(Uniform(), 2, seed=2)
    first.decide()
    with pytest.raises(UserError, match="never made"):
        first.update(second.decide(), 1.0)


def test_late_rewards_are_weighed_by_the_law_of_their_own_decision():
    """Exponential weights divide by the probability at the time of the decision, not by today's."""
    player = Player(Exp3(gamma=0.5), n_arms=2, seed=3)
    late = player.decide()
    for _ in range(30):
        decision = player.decide()
        player.update(decision, float(decision.arm == 0))
    before = player._state.state.scores.copy()
    player.update(late, 1.0)
    gained = (player._state.state.scores - before)[late.arm]
    assert gained == pytest.approx(0.5 / 2 * 1.0 / 0.5)  # the first decision was fair


def test_a_late_reward_belongs_to_the_step_of_its_decision():
    """The anytime rate of EXP3-IX falls with the step: the first decision has that of step 1."""
    player = Player(Exp3IX(), n_arms=3, seed=3)
    late = player.decide()
    for _ in range(30):
        player.update(player.decide(), 1.0)  # no loss
    player.update(late, 0.0)
    rate = np.sqrt(np.log(3) / 3)
    assert player._state.state.losses[late.arm] == pytest.approx(1.0 / (1 / 3 + rate / 2))


def test_an_arm_stands_for_its_latest_decision_that_waits():
    player = Player(Uniform(), n_arms=2, seed=1)
    decisions = [player.decide() for _ in range(12)]
    mine = [decision for decision in decisions if decision.arm == 1]
    assert len(mine) > 2
    player.update(1, 0.5)
    assert mine[-1].id not in {waiting.id for waiting in player.pending()}
    assert mine[0].id in {waiting.id for waiting in player.pending()}
    assert not player.update(mine[-1], 1.0)


def test_decisions_wait_for_the_same_arms_when_another_goes():
    player = Player(Uniform(), n_arms=5, seed=1)
    decisions = [player.decide() for _ in range(20)]
    player.remove_arm(1)
    assert player.pending() == [decision for decision in decisions if decision.arm != 1]


@each("reward", [-0.1, 1.1, float("nan"), float("inf"), "1", None, [1.0]])
def test_a_wrong_reward_is_refused_and_changes_nothing(reward):
    player = Player(ABE(), n_arms=3, seed=1)
    player.update(player.select(), 0.5)
    before = snapshot(player)
    with pytest.raises(UserError, match="reward must be"):
        player.update(0, reward)
    with pytest.raises(UserError, match="reward must be"):
        player.update(0, 0.5, also={1: reward})
    with pytest.raises(UserError, match="reward must be"):
        player.update_many([(0, 0.5), (1, reward)])
    assert snapshot(player) == before


@each("arm", [3, -1, 1.5, "x", None, True, 10**30])
def test_a_wrong_arm_is_refused_and_changes_nothing(arm):
    player = Player(UCB1(), n_arms=3, seed=1)
    before = snapshot(player)
    with pytest.raises(UserError, match=r"arm|decision"):
        player.update(arm, 0.5)
    with pytest.raises(UserError, match="arm"):
        player.update(0, 0.5, also={arm: 0.5})
    assert snapshot(player) == before


def test_the_tried_arm_is_no_side_observation():
    with pytest.raises(UserError, match="both the arm tried and a side observation"):
        Player(UCB1(), n_arms=3, seed=1).update(0, 0.5, also={0: 0.5})


@each(
    ("options", "message"),
    [
        ({"n_arms": 0}, "n_arms must be a whole number >= 1"),
        ({"n_arms": 2.5}, "n_arms"),
        ({"n_arms": 2**40}, "n_arms must be at most"),
        ({"n_arms": 2, "seed": -1}, "seed"),
        ({"n_arms": 2, "horizon": 0}, "horizon"),
        ({"n_arms": 2, "policy": "Nope"}, "unknown policy"),
        ({"n_arms": 2, "policy": 7}, "policies must be"),
        ({"n_arms": 2, "policy": "Exp3P"}, "needs to know the horizon"),
        ({"n_arms": 2, "max_pending": 0}, "max_pending"),
    ],
)
def test_a_player_that_cannot_be_made_says_why(options, message):
    with pytest.raises(UserError, match=message):
        Player(**{"policy": UCB1()} | options)


def test_side_observations_count_as_observations():
    player = Player(UCB1(), n_arms=3, seed=1)
    player.update(0, 0.5, also={2: 1.0})
    assert player._state.state.observations.tolist() == [1.0, 0.0, 1.0]
    assert player.select() == 1


def test_forgotten_decisions_do_not_pile_up():
    player = Player(Uniform(), n_arms=2, seed=1, max_pending=10)
    first = player.decide()
    for _ in range(20):
        player.decide()
    assert len(player.pending()) == 10
    assert not player.update(first, 1.0)


def test_batches_prefer_what_the_policy_prefers():
    player = Player(Boltzmann(eta=50.0, schedule="constant"), n_arms=4, seed=1)
    player.update_many([(0, 0.0), (1, 0.4), (2, 1.0), (3, 0.7)])
    assert player.select(3) == [2, 3, 1]
    with pytest.raises(UserError, match="k must be at most 4"):
        player.select(5)


@pytest.mark.parametrize("policy", [Exp3(gamma=0.5), Exp3P(gamma=0.3, alpha=0.0), Exp3IX(eta=0.2)], ids=str)
def test_a_batch_is_drawn_and_weighed_by_the_law_restricted_to_the_arms_left(policy):
    """The second arm of a batch has the first one's law without the arms taken, and its reward is divided by that."""
    n_arms = 4
    counts, wanted = np.zeros(n_arms), np.zeros(n_arms)
    for seed in range(400):
        player = Player(policy, n_arms, horizon=100, seed=seed)
        player.update_many([(0, 1.0), (1, 0.0), (1, 0.0), (3, 1.0), (3, 0.5)])
        law = player.probabilities()
        batch = player.decide_many(3)
        arms = [decision.arm for decision in batch]
        restricted = [law / (1.0 - law[arms[:place]].sum()) for place in range(3)]
        chances = [law[arm] for law, arm in zip(restricted, arms, strict=True)]
        rest = restricted[2].copy()
        rest[arms[:2]] = 0.0
        counts[arms[2]] += 1
        wanted += rest
        if seed >= 5:
            continue
        for decision, chance in zip(reversed(batch), reversed(chances), strict=True):
            weights = player.copy()
            assert weights.update(decision, 0.75)
            if isinstance(policy, Exp3IX):
                gained = weights._state.state.losses - player._state.state.losses
                estimate = 0.25 / (chance + 0.2 / 2)
            else:
                step = 0.5 / n_arms if isinstance(policy, Exp3) else 0.3 / (3 * n_arms)
                gained = (weights._state.state.scores - player._state.state.scores) / step
                estimate = 0.75 / chance
            assert gained[decision.arm] == pytest.approx(estimate)
    assert (np.abs(counts - wanted) < 4.5 * np.sqrt(wanted)).all()


def test_probabilities_of_posterior_draws_are_known():
    player = Player(Thompson(), n_arms=2, seed=0)
    assert player.probabilities().tolist() == pytest.approx([0.5, 0.5], abs=1e-12)
    player.update(0, 1.0)  # Beta(2, 1) against Beta(1, 1): 2/3
    assert player.probabilities().tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-12)


def test_arms_keep_their_names():
    player = Player(UCB1(), n_arms=3, seed=1)
    waiting = player.decide()
    player.remove_arm(1 if waiting.arm != 1 else 0)
    assert player.add_arm() == 3
    assert 3 in player.arms
    assert len(player.arms) == 3
    assert player.update(waiting, 1.0)
    assert player._state.state.observations[player.arms.index(waiting.arm)] == 1.0
    with pytest.raises(UserError, match="there is no arm"):
        player.update(1 if waiting.arm != 1 else 0, 1.0)


def test_the_last_arm_stays():
    player = Player(UCB1(), n_arms=2, seed=1)
    player.remove_arm(0)
    with pytest.raises(UserError, match="last one"):
        player.remove_arm(1)
    assert player.arms == [1]


def test_a_removed_arms_waiting_decisions_are_forgotten():
    player = Player(Uniform(), n_arms=2, seed=1)
    decisions = [player.decide() for _ in range(10)]
    player.remove_arm(0)
    assert {d.arm for d in player.pending()} == {1}
    assert [player.update(d, 1.0) for d in decisions] == [d.arm == 1 for d in decisions]


@pytest.mark.parametrize("policy", [ABE(eta=1.0, c=1.0), Thompson()], ids=str)
def test_threads_may_share_a_player(policy):
    player = Player(policy, n_arms=5, seed=1)
    errors = []

    def work():
        try:
            for _ in range(100):
                decision = player.decide()
                assert player.update(decision, 0.5)
                assert not player.update(decision, 0.5)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert player._steps == 800
    counted = (
        player._state.state.observations
        if hasattr(player._state.state, "observations")
        else player._state.state.successes + player._state.state.failures - 2
    )
    assert counted.sum() == 800.0
    assert player.pending() == []


def test_compiled_and_interpreted_players_decide_alike():
    slow, fast = (Player(Thompson(), n_arms=5, seed=4, compiled=compiled) for compiled in (False, True))
    for step in range(50):
        arms = slow.select(), fast.select()
        assert arms[0] == arms[1]
        for player, arm in zip((slow, fast), arms, strict=True):
            player.update(arm, (step % 3) / 2)


def saved(tmp_path):
    player = Player(ABE(eta=1.0, c=1.0), n_arms=4, seed=2)
    for _ in range(9):
        player.update(player.select(), 0.5)
    player.decide()
    path = tmp_path / "player.json"
    player.save(path)
    return player, path


def test_a_saved_player_holds_everything(tmp_path):
    player, path = saved(tmp_path)
    twin = Player.load(path)
    assert snapshot(twin) == snapshot(player)
    assert twin.policy == player.policy
    json.loads(path.read_text())  # plain JSON
    assert list(tmp_path.iterdir()) == [path]  # no temporary file is left


@given(st.integers(0, 10**9))
@settings(max_examples=60)
def test_a_damaged_file_gives_one_clear_error(tmp_path_factory, where):
    folder = tmp_path_factory.mktemp("damage")
    _, path = saved(folder)
    content = bytearray(path.read_bytes())
    position = where % len(content)
    content[position] ^= 1 << (where % 7)
    path.write_bytes(bytes(content))
    try:
        loaded = Player.load(path)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert "player.json" in str(error)  # noqa: PT017
    else:  # only white space between the values may change unnoticed
        assert snapshot(loaded)[:3] == snapshot(Player.load(saved(folder)[1]))[:3]


def test_a_damaged_file_that_still_makes_sense_is_told_by_its_checksum(tmp_path):
    _, path = saved(tmp_path)
    text = path.read_text()
    for old, new in (('"rewarded": 9', '"rewarded": 8'), ('"iteration": 1', '"iteration": 2')):
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        with pytest.raises(UserError, match="its checksum does not fit"):
            Player.load(path)


@each("keep", [0, 1, 100, 1000])
def test_a_truncated_file_gives_one_clear_error(tmp_path, keep):
    _, path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match="damaged or not a saved player"):
        Player.load(path)


@each(
    ("content", "message"),
    [
        ('{"header": {"format": "other"}, "player": {}}', "format 'other'"),
        (
            '{"header": {"format": "abex-player", "version": 99}, "player": {}}',
            "another version of abex .format 99",
        ),
        ("[]", "damaged or not a saved player"),
        ("\x80\x04\x95", "damaged|not a text"),
    ],
)
def test_a_foreign_file_gives_one_clear_error(tmp_path, content, message):
    path = tmp_path / "player.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        Player.load(path)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.json"):
        Player.load(tmp_path / "nowhere.json")
    with pytest.raises(UserError, match="no_folder"):
        Player(UCB1(), 2, seed=0).save(tmp_path / "no_folder" / "player.json")


def forge(path, change):
    """Change the body and give it a right checksum, as somebody who means harm would."""
    body = json.loads(path.read_text())["player"]
    change(body)
    path.write_text(player_file.with_checksum(body, "abex-player", 1))


@each(
    "change",
    [
        lambda body: body.update(policy="__import__('os').system('false')"),
        lambda body: body["state"]["means"].update(shape=[2]),
        lambda body: body["state"]["means"].update(dtype="object"),
        lambda body: body["state"]["means"].update(data="!!"),
        lambda body: body.pop("random"),
        lambda body: body["state"].pop("iteration"),
        lambda body: body["state"].update(other="x"),
        lambda body: body["state"]["observations"].update(dtype="int64"),
        lambda body: body["lives"].clear(),
        lambda body: body["random"]["state"].update(inc=2),
        lambda body: body.update(n_arms=-1),
        lambda body: body.update(graph=["os", {}]),
        lambda body: body["pending"].append([1]),
    ],
)
def test_a_forged_file_is_refused(tmp_path, change):
    _, path = saved(tmp_path)
    forge(path, change)
    with pytest.raises(UserError):
        Player.load(path)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    player, path = saved(tmp_path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("abex.support.files.os.fsync", full)
    player.update(player.select(), 1.0)
    with pytest.raises(UserError, match="No space left on device"):
        player.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_file_has_the_mode_of_any_other_file(tmp_path):
    (tmp_path / "other").write_text("x")
    player, path = saved(tmp_path)
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.chmod(0o600)
    player.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_copy_lives_its_own_life():
    player = Player(Thompson(), n_arms=3, seed=1)
    twin = player.copy()
    assert [player.select() for _ in range(9)] == [twin.select() for _ in range(9)]
    player.update(0, 1.0)
    assert twin._state.state.successes[0] == 1.0


def test_seeds_are_independent_and_repeatable():
    arms = [Player(Uniform(), 100, seed=seed).select() for seed in (1, 1, 2, 3)]
    assert arms[0] == arms[1]
    assert len(set(arms)) > 1


def test_resizing_keeps_what_was_learned():
    policy = UCB1()
    state = policy.start(Setting(3))
    state.means[:] = [0.1, 0.2, 0.3]
    state.observations[:] = 1.0
    smaller = policy.resume(Setting(3), saved_record(state), np.array([2, 0]))
    assert smaller.means.tolist() == [0.3, 0.1, np.inf]


@each(
    ("arguments", "message"),
    [
        ((3, 10**400), "reward must be a finite number"),
        ((3, 0.5, [1]), "also must be a dict"),
        ((3, 0.5, 1.0), "also must be a dict"),
    ],
)
def test_strange_rewards_are_named(arguments, message):
    player = Player(UCB1(), n_arms=5, seed=1)
    before = snapshot(player)
    with pytest.raises(UserError, match=message):
        player.update(*arguments)
    with pytest.raises(UserError, match=r"there is no arm .*: arms are 0 to 4"):
        player.update(f"00000000-{'9' * 5000}", 0.5)
    for wrong in ([(3,)], {3: 1.0}, [3], [(1, 2, 3, 4, 5)]):
        with pytest.raises(UserError, match="a reward must be"):
            player.update_many(wrong)
    assert snapshot(player) == before


def test_a_reward_from_elsewhere_is_weighed_by_the_present_law():
    player = Player(Exp3(gamma=0.5), n_arms=10, seed=0)
    decision = player.decide()
    player.update(decision, 1.0)
    chance = player.probabilities()[3]
    before = player._state.state.scores[3]
    player.update(3, 1.0)
    assert player._state.state.scores[3] - before == pytest.approx(0.5 / 10 / chance)


class _Wrong(Uniform):
    """Selects what it is told to."""

    answer = -1

    @staticmethod
    def select(state, t, rng):
        return _Wrong.answer


@pytest.mark.parametrize("answer", [-1, 5, 0.5, None])
def test_a_policy_that_selects_no_arm_changes_nothing(answer, monkeypatch):
    monkeypatch.setattr(_Wrong, "answer", answer)
    player = Player(_Wrong(), n_arms=5, seed=1)
    with pytest.raises(UserError, match="selected an arm that does not exist"):
        player.select()
    assert player.pending() == []


@pytest.mark.parametrize("policy", ["Evidence", "Thompson", "Windowed(UCB1, width=20)", "EXP3IX(eta=0.1)"])
def test_compiled_players_decide_alike_while_arms_come_and_go(policy):
    """What is compiled is kept for a state: another number of arms, or a copy, is another state."""
    slow, fast = (Player(policy, n_arms=4, seed=4, compiled=compiled) for compiled in (False, True))
    for step in range(60):
        arms = [player.select() for player in (slow, fast)]
        assert arms[0] == arms[1]
        for player in (slow, fast):
            player.update(arms[0], step % 3 / 2.0)
            if slow._state.policy.resizable and step == 20:
                player.add_arm()
            if slow._state.policy.resizable and step == 40:
                player.remove_arm(1)
        if step == 30:
            fast = fast.copy()
        np.testing.assert_allclose(slow.probabilities(), fast.probabilities(), rtol=1e-9, atol=1e-12)


def test_learning_draws_numbers_only_where_a_kernel_reads_them():
    draws = {
        name: Player(name, n_arms=3)._state.draws_to_learn for name in ("Evidence", "EXP3IX(eta=0.1)", "UCB1")
    }
    assert draws == {"Evidence": False, "EXP3IX(eta=0.1)": False, "UCB1": False}

    def learns_by_lot(state, t, arm, seen, reward, numbers):
        return numbers.random()

    def hands_on(*arguments):
        return learns_by_lot(*arguments)

    def keeps(state, t, arm, seen, reward, rng):
        return lambda: rng

    assert all(reads_last(kernel) for kernel in (learns_by_lot, hands_on, keeps, len))


def test_what_costs_much_is_compiled_unless_told_otherwise(monkeypatch):
    pytest.importorskip("numba")
    many = Player(Thompson(), n_arms=20_000, seed=3)
    assert many._state.compiled
    for worth, compiled in ((1e9, False), (0.0, True)):
        monkeypatch.setattr(policy_runner, "WORTH_COMPILING", worth)
        assert Player(Thompson(), n_arms=20, seed=3)._state.compiled is compiled
    assert not Player(_Wrong(), n_arms=5)._state.compiled  # a policy of another package
    assert not Player(Thompson(), n_arms=20, seed=3, compiled=False)._state.compiled
    assert len(set(many.select(4))) == 4
    few, same = (Player(Thompson(), n_arms=40, seed=3, compiled=compiled) for compiled in (False, True))
    assert [few.select(3) for _ in range(5)] == [same.select(3) for _ in range(5)]
    with pytest.raises(UserError, match="compiled must be True or False"):
        Player(Thompson(), n_arms=3, compiled="yes")


@pytest.mark.parametrize("change", [{"policy": None}, {"pending": [["x", 1, 5000, []]]}], ids=str)
def test_a_file_with_a_right_checksum_and_wrong_content_is_refused(tmp_path, change):
    path = tmp_path / "player.json"
    player = Player(UCB1(), n_arms=3, seed=0)
    player.select()
    player.save(path)
    forge(path, lambda body: body.update(change))
    with pytest.raises(UserError, match=r"cannot load|unknown policy"):
        Player.load(path)


@each(
    ("make", "message"),
    [
        (lambda: Thompson(resample="x"), "resample must be True or False"),
        (lambda: Thompson(successes=1e14), "successes must be"),
        (lambda: BoltzmannGumbel(shared_noise="x"), "shared_noise must be True or False"),
        (lambda: Player("ABE(eta=1, eta=2)", 3), "cannot read the policy"),
        (lambda: Player("UCB1(", 3), "cannot read the policy"),
        (lambda: simulate(None, Bernoulli([0.5]), horizon=5), "policies must be"),
        (lambda: simulate(5, Bernoulli([0.5]), horizon=5), "policies must be"),
        (lambda: simulate("UCB1", Bernoulli([0.5]), horizon=5, checkpoints=None), "checkpoints must be"),
        (lambda: Bernoulli([0.5] * 100_000 + ["x"]), "must be a list of numbers"),
    ],
)
def test_wrong_parameters_are_one_short_sentence(make, message):
    with pytest.raises(UserError, match=message) as raised:
        make()
    assert len(str(raised.value)) < 600


def test_printed_a_decision_has_its_probability_and_a_player_its_arms():
    player = Player("Thompson", arms=["red", "green"], seed=1)
    decision = player.decide()
    assert str(decision) == f"{decision.arm}, chosen with probability 0.5 (decision {decision.id})"
    late = player.decide()
    player.update(decision, 1.0)
    assert str(late) == f"{late.arm} (decision {late.id})"  # too late to work it out
    assert str(player) == str(player.summary())
    assert "1.000" in str(player)
