"""Who won among the arms of a player, in one process and shared."""

from datetime import timedelta

import numpy as np
import pytest

from abex import Player, UserError
from abex.cli import main


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
    assert "level of no arm moves" in found.sentence
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


def test_a_shared_player_bets_on_its_log(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "TopTwo", arms=["red", "blue"], seed=3) as player:
        feed(player, {"red": 0.1, "blue": 0.7}, 150)
        player.flush()
        found = player.winner()
        assert (found.winner, found.method) == ("blue", "bets")
        assert "assuming" not in found.sentence
        player.add_arm("green")
        assert player.winner().method == "pairs", (
            "the probabilities of three arms do not follow from that of one"
        )


def test_decisions_after_the_first_that_waits_do_not_count_where_decisions_expire(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(
        url, "banner", "TopTwo", arms=["red", "blue"], seed=3, expire=timedelta(days=1)
    ) as player:
        waits = player.decide()
        feed(player, {"red": 0.1, "blue": 0.7}, 150)
        assert player.winner().method == "pairs", "nothing before the first that waits"
        player.update(waits, 0.0)
        assert player.winner().method == "bets"


def test_the_command(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "TopTwo", arms=["red", "blue"], seed=3) as player:
        feed(player, {"red": 0.1, "blue": 0.7}, 150)
    main(["player", "winner", "banner", "--store", url])
    assert capsys.readouterr().out.startswith("blue is best (wrong in at most 5 % of such experiments)")
    with pytest.raises(SystemExit) as stopped:
        main(["player", "winner", "banner", "--store", url, "--risk", "1"])
    assert stopped.value.code == 2
    assert "risk must be" in capsys.readouterr().err
