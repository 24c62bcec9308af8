"""Players saved before fields of their states were renamed go on as they would have then."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from abex import UCB1, BoltzmannGumbel, Discounted, Evidence, Player, UserError
from abex.policies.base import Policy
from abex.policies.former_fields import present_fields
from abex.policies.greedy import leader_means

FILES = Path(__file__).parent / "files"

# the arms that these files, of format 3, led to when they were written; that of ABE has its sampler made anew since
GOES_ON = {
    "abe": "23163661116161213133",
    "exp3": "33101332303102321130",
    "exp3pp": "10022323322231322210",
    "elimination": "10324423102430124103",
    "ucblp": "33333333333333333333",
    "dom": "10032434433242432310",
    "gpp": "10022434422242322310",
    "ix": "11032434433242432310",
    "elp": "10011434422141322210",
    "greedy": "33333320333333103333",
    "etc": "11111111111111111111",
    "multiboost": "10011323322131321210",
    "ucbv": "11220321310020203120",
    "maxn": "33433401313344033111",
}


@pytest.mark.parametrize("name", GOES_ON)
def test_a_player_of_format_3_goes_on(name, tmp_path):
    player = Player.load(FILES / f"player_format3_{name}.json", compiled=False)
    player.save(tmp_path / "again.json")  # in the present format
    for one in (player, Player.load(tmp_path / "again.json", compiled=False)):
        for decision in one.pending():
            assert one.update(decision.id, 1.0)
        arms = []
        for step in range(20):
            decision = one.decide()
            one.update(decision.id, float((step * 7 + decision.arm) % 5 < 2))
            arms.append(decision.arm)
        assert "".join(map(str, arms)) == GOES_ON[name]


@pytest.mark.parametrize(
    ("name", "policy", "n_arms"),
    [
        ("evidence", Discounted(Evidence(), gamma=0.95), 4),
        ("bge", Discounted(BoltzmannGumbel(), gamma=0.999), 5),
        ("bge_many", Discounted(BoltzmannGumbel(), gamma=0.99), 20),
        ("ucb", Discounted(UCB1(), gamma=0.97), 70),
    ],
)
def test_a_discounted_player_whose_sampler_was_another_goes_on(name, policy, n_arms):
    loaded, player = Player.load(FILES / f"player_format4_{name}.json"), Player(policy, n_arms, seed=1)
    for t in range(60):  # as when the file was written
        player.update(t % n_arms, float(t * 7 % 5 < 2))
    assert loaded.policy == policy
    for _ in range(40):  # while time passes
        np.testing.assert_allclose(loaded.probabilities(), player.probabilities(), rtol=1e-9)
        loaded.select(), player.select()


def test_former_numbers_are_counted():
    fresh = leader_means(3, 0.1, False)
    array = {"dtype": "int64", "shape": [2], "data": "AAAAAAAAAAAAAAAAAAAAAA=="}
    with pytest.raises(ValueError, match="leader must be 2 numbers"):
        present_fields({"lead": array, "runner_up": array}, fresh)
    with pytest.raises(ValueError, match="state must be a record"):
        present_fields([1], fresh)


def test_former_names_warn():
    import abex.schema
    from abex.policies.means import new_means

    with pytest.warns(DeprecationWarning, match=r"abex.schema.Law is now abex.schema.Distribution"):
        assert abex.schema.Law is abex.schema.Distribution
    with pytest.warns(DeprecationWarning, match="the field pulls is now observations"):
        assert new_means(2).pulls.tolist() == [0.0, 0.0]
    with pytest.raises(AttributeError, match="has no attribute 'Lawful'"):
        abex.schema.Lawful  # noqa: B018


def test_a_policy_that_remembers_chances_is_told():
    with pytest.warns(DeprecationWarning, match='is now "probabilities"'):

        class _Former(Policy):
            remembers = ("chances",)

    assert _Former.weighed_by() == "chances"
    with warnings.catch_warnings(action="error"):

        class _Present(Policy):
            remembers = ("size", "probabilities")

    assert _Present.weighed_by() == "probabilities"


def test_a_damaged_file_of_format_3_is_refused(tmp_path):
    text = (FILES / "player_format3_greedy.json").read_text()
    (tmp_path / "damaged.json").write_text(text.replace('"lead"', '"lean"'))
    with pytest.raises(UserError, match="checksum"):
        Player.load(tmp_path / "damaged.json")
    assert np.isfinite(Player.load(FILES / "player_format3_greedy.json").probabilities()).all()
