"""Who won among the arms of a player, in one process and shared."""

import json
from datetime import timedelta

import numpy as np
import pytest

from abex import Player, UserError
from abex.cli import main
from abex.inference import ratio


def feed(player, rates, rounds, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        made = player.decide()
        player.update(made, float(rng.random() < rates[made.arm]))
    return player


def test_a_player_names_its_winner_and_says_what_it_assumes():
    player = feed(Player("TopTwo", arms=["red", "blue"], seed=1), {"red": 0.2, "blue": 0.6}, 400)
    found = player.winner(risk=0.05)
    assert found.winner == "blue"
    assert found.sentence.startswith("blue is best (wrong in at most 5 % of such experiments")
    assert found.method == "bets"
    assert "assuming" not in found.sentence
    certain = feed(Player("UCB1", arms=["red", "blue"]), {"red": 0.2, "blue": 0.6}, 900).winner()
    assert (certain.winner, certain.method) == ("blue", "sums")
    assert "assuming that the level of no arm moves)" in certain.sentence
    assert player.copy().winner() == found
    early = feed(Player("TopTwo", arms=["red", "blue"], seed=1), {"red": 0.2, "blue": 0.6}, 5).winner()
    assert early.winner is None
    assert "roughly" in early.sentence or "too little" in early.sentence


def test_the_difference_that_matters_is_in_the_unit_of_the_rewards():
    player = Player("Uniform", arms=["a", "b"], rewards=(0, 100), seed=2)
    player.update_many([("a", 50.0), ("b", 50.0)] * 1500)
    assert player.winner(at_least=20.0).alike == ("a", "b")
    assert not player.winner(at_least=1.0).alike
    with pytest.raises(UserError, match="at_least must be"):
        player.winner(at_least=200.0)


def test_a_shared_player_says_the_same_after_its_journal_is_pruned(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "TopTwo", arms=["red", "blue", "green"], seed=3) as player:
        feed(player, {"red": 0.1, "blue": 0.7, "green": 0.1}, 200)
        player.flush()
        found = player.winner(control="red")
        assert (found.winner, found.method) == ("blue", "bets")
        assert "assuming" not in found.sentence
        player.compact()
        with Player.open(url, "banner") as again:
            assert again.winner(control="red") == found
            assert again.text() == player.text()
            again.rename_arm("blue", "teal")
            assert again.winner().winner == "teal"
            again.add_arm("brown")
            assert again.winner().winner is None, "nothing is known of the new one"


def test_decisions_after_the_first_that_waits_do_not_count_where_decisions_expire():
    player = Player("TopTwo", arms=["red", "blue"], seed=3, expire=timedelta(days=1))
    waits = player.decide()
    feed(player, {"red": 0.1, "blue": 0.7}, 150)
    assert [one.n for one in player.winner().arms] == [0, 0]
    assert (player.summary()[0].low, player.summary()[0].high) == (0.0, 1.0)
    player.update(waits, 0.0)
    assert player.winner().winner == "blue"
    assert sum(one.n for one in player.winner().arms) == 151
    assert "told" not in player.winner().sentence


def test_rewards_that_overtake_others_are_assumed_not_to_depend_on_what_they_are():
    player = Player("TopTwo", arms=["red", "blue"], seed=3)
    feed(player, {"red": 0.1, "blue": 0.7}, 50)
    assert "assuming" not in player.winner().sentence
    player.decide()  # whose reward never comes
    feed(player, {"red": 0.1, "blue": 0.7}, 100)
    assert (
        "assuming that whether and when a reward is told does not depend on what it is"
        in player.winner().sentence
    )


def test_lifts_are_against_the_control_with_intervals_and_the_chance_to_be_best_with_its_prior():
    player = feed(Player("Uniform", arms=["red", "blue"], seed=1), {"red": 0.2, "blue": 0.6}, 400)
    red, blue = player.winner(control="red").arms
    assert red.lift is red.lift_interval is None
    assert blue.lift == pytest.approx(blue.rate / red.rate - 1.0)
    assert blue.lift_interval == pytest.approx(
        [end - 1.0 for end in ratio(blue.n, blue.n * blue.rate, red.n, red.n * red.rate)]
    )
    assert red.chance_to_be_best < 1e-6 < 0.999 < blue.chance_to_be_best
    text = player.winner(control="red").table()
    assert "lift against red" in text
    assert "chance to be best: with a flat prior, as a picture; it is no reason to stop" in text
    revenue = Player("Uniform", arms=[1, 2], rewards=(0, 50), seed=1)
    revenue.update_many([(1, 10.0), (2, 20.0), (1, 12.0), (2, 25.0)] * 50)
    one, two = revenue.winner(control=1).arms
    assert (one.rate, two.rate, two.lift) == pytest.approx((11.0, 22.5, 11.5))
    assert one.interval[1] < two.interval[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"risk": 0}, "risk must be"),
        ({"risk": 1}, "risk must be"),
        ({"control": "rad"}, "there is no arm 'rad' for a control.*red"),
        ({"at_least": 0}, "at_least must be"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(asked, said):
    with pytest.raises(UserError, match=said):
        Player("TopTwo", arms=["red", "blue"]).winner(**asked)


def test_a_winner_needs_two_arms_and_rewards_that_differ():
    with pytest.raises(UserError, match="there is one alone"):
        Player(arms=["red"]).winner()
    with pytest.raises(UserError, match="up to 1,000 arms"):
        Player("UCB1", n_arms=1001, compiled=False).winner()
    player = Player(arms=["red", "blue"], rewards=(1, 3), seed=0)
    player.update_many([("red", 1.0), ("blue", 1.0)] * 20)
    assert player.winner().sentence == "not yet: all rewards so far are 1: nothing tells the arms apart"


def test_the_command(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "TopTwo", arms=["red", "blue"], seed=3) as player:
        feed(player, {"red": 0.1, "blue": 0.7}, 150)
    main(["player", "winner", "banner", "--store", url, "--control", "red"])
    told = capsys.readouterr().out
    assert (
        "\nblue is best (wrong in at most 5 % of such experiments)\nchance to be best: with a flat prior"
        in told
    )
    assert "lift against red" in told
    main(["player", "winner", "banner", "--store", url, "--json"])
    assert json.loads(capsys.readouterr().out)["arms"][1]["label"] == "blue"
    with pytest.raises(SystemExit) as stopped:
        main(["player", "winner", "banner", "--store", url, "--control", "rad"])
    assert stopped.value.code == 2
    with pytest.raises(SystemExit) as stopped:
        main(["player", "winner", "banner", "--store", url, "--risk", "1"])
    assert stopped.value.code == 2
    assert "risk must be" in capsys.readouterr().err


def test_nothing_is_forecast_while_an_arm_was_never_tried():
    player = Player("UCB1", arms=["red", "green", "blue"], seed=1)
    for reward in (1.0, 0.0):  # of two arms
        decision = player.decide()
        player.update(decision, reward)
    found = player.winner()
    assert (found.rival, found.remaining) == (None, None)
    assert "too little was observed" in found.sentence
