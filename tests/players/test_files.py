"""What a player's file may hold: exact resume, rules for every field, forged files, files of earlier versions."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from abex import (
    ABE,
    UCB1,
    Discounted,
    Exp3,
    ExploreThenCommit,
    Player,
    Restarting,
    Thompson,
    UserError,
    Windowed,
)
from abex.graphs import star
from abex.graphs.graph_file import read_graph, write_graph
from abex.kernels import Record
from abex.kinds import learned, read, written
from abex.kinds import saved as saved_record
from abex.players.player_file import player_text, read_player
from abex.policies.certify import Certify
from abex.policies.policy import Setting, plays_on
from abex.policies.ucb import inv_sqrt_counts
from abex.support.files import encode_array, write_atomically
from tests.each import each, each_group
from tests.examples import all_examples, by_class
from tests.fuzz.players import FuzzedOwn, FuzzedTuple, graph_of, play, saved, sealed

EXAMPLES = all_examples()


def reloaded(player):
    return read_player(player_text(player), "the player", False)


# -- exact resume -----------------------------------------------------------------------------------


def play_alike(policy, n_arms, graph, steps):
    """A player that is saved again and again, and one that is loaded: the same arms, with late rewards and side observations."""
    rng = np.random.default_rng(5)
    player = Player(policy, n_arms, graph=graph, horizon=3000, seed=3, compiled=False)
    twin, waiting = player.copy(), []
    for step in range(steps):
        if step % 29 == 7 or step in (0, 1, 2, n_arms + 1):
            player_text(player)  # which makes its sampler anew
            twin = reloaded(twin)
        ours, theirs = player.decide(), twin.decide()
        assert ours.arm == theirs.arm, f"{policy} with {n_arms} arms on {graph} at step {step}"
        waiting.append((ours, theirs))
        while waiting and rng.random() < 0.7:
            pair = waiting.pop(rng.integers(len(waiting)))
            arm = pair[0].arm
            reward = float(rng.random() < 0.3 + 0.4 * arm / n_arms) if step % 3 else float(rng.random())
            others = (
                rng.choice(n_arms, min(n_arms, 2), replace=False) if graph is not None and step % 2 else ()
            )
            also = {int(k): float(rng.random() < 0.5) for k in others if k != arm}
            assert player.update(pair[0], reward, also) == twin.update(pair[1], reward, also)
    states = [written(saved_record(reloaded(one)._state.state)) for one in (player, twin)]
    assert states[0] == states[1]


@each_group("policy", by_class(EXAMPLES))
def test_a_loaded_player_goes_on_exactly(policy):
    few, lots = ([] if policy.needs_graph else policy.start(Setting(n, 1000)) for n in (3, 120))
    many = type(getattr(few, "sampler", None)) is not type(getattr(lots, "sampler", None))
    for n_arms in (1, 3, 8, 30, 120) if many else (1, 3, 14):
        kinds = ["none"]
        if policy.needs_graph:
            kinds = ["random", "dropping", "drawn", "turns"][n_arms % 2 :: 2]
            kinds = [kind for kind in kinds if plays_on(policy, graph_of(kind, n_arms))]
        elif isinstance(policy, ABE):
            kinds = ["none", "dropping"]
        for kind in kinds:
            play_alike(policy, n_arms, graph_of(kind, n_arms), 70 if n_arms < 100 else 330)


# -- kinds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_arms", [3, 200])
def test_our_states_are_records_whose_arrays_of_the_arms_are_learned_or_made(n_arms):
    for policy in EXAMPLES:
        state = policy.start(Setting(n_arms, 1000, star(n_arms) if policy.needs_graph else None))
        assert isinstance(state, Record), policy
        assert learned(type(state)) or not saved_record(state) or isinstance(policy, Certify), policy


@pytest.mark.parametrize("n_arms", [3, 200])
def test_no_file_holds_a_sampler(n_arms):
    """It is made anew from what was learned: none of its numbers has a kind."""
    for policy in EXAMPLES:
        state = policy.start(Setting(n_arms, 1000, star(n_arms) if policy.needs_graph else None))
        sampler = getattr(state, "sampler", None)
        assert sampler is None or not saved_record(sampler), policy


def forged_record(policy, n_arms, change, steps=60):
    """The state of a player whose record was changed by hand, read as from a file."""
    player = Player(policy, n_arms, seed=1, compiled=False, horizon=500)
    for step in range(steps):
        player.update(player.select(), float(step % 3 == 0))
    change(player._state.state)
    setting = player._state.setting
    text = json.loads(json.dumps(written(saved_record(player._state.state))))
    return policy.resume(setting, read(text, policy.start(setting))), player


@each(
    ("policy", "change", "message"),
    [
        (UCB1(), lambda s: s.observations.__setitem__(1, -1.0), "observations must be numbers >= 0"),
        (UCB1(), lambda s: s.observations.__setitem__(1, np.nan), "observations must be numbers >= 0"),
        (UCB1(), lambda s: s.observations.__setitem__(1, 0.0), "untouched where none was seen"),
        (UCB1(), lambda s: s.means.__setitem__(1, np.nan), "means must be means"),
        (UCB1(), lambda s: s.means.__setitem__(1, 1.5), "means must be means"),
        (
            Thompson(),
            lambda s: s.successes.__setitem__(1, 0.5),
            "successes must be no less than where it started",
        ),
        (
            Thompson(),
            lambda s: s.failures.__setitem__(1, np.inf),
            "failures must be no less than where it started",
        ),
        (
            ExploreThenCommit(observations=1),
            lambda s: setattr(s, "committed", 3),
            "committed must be numbers of arms",
        ),
        (ABE(c=1.0), lambda s: s.xi.arms.__setitem__(0, 3), "arms must be numbers of arms"),
        (ABE(c=1.0), lambda s: s.xi.arms.__setitem__(0, -1), "arms must come first"),
        (ABE(c=1.0), lambda s: s.xi.revealer.fill(0), "must be the first to show one"),
        (ABE(c=1.0), lambda s: setattr(s.xi, "at", 3), "the sweep must be on its sequence"),
        (ABE(c=1.0), lambda s: setattr(s.xi, "at", -1), "at must be numbers >= 0"),
        (ABE(c=1.0), lambda s: setattr(s, "due", np.inf), "due must be finite numbers"),
        (ABE(c=1.0), lambda s: setattr(s, "iteration", 0), "an iteration must be under way"),
        (Exp3(gamma=0.2), lambda s: s.scores.__setitem__(0, np.nan), "scores must be finite numbers"),
        (Discounted(UCB1()), lambda s: setattr(s.memory, "factor", 0.0), "factor must be a weight"),
        (Discounted(UCB1()), lambda s: setattr(s.memory, "total", 1e9), "total must be a discounted time"),
        (
            Windowed(UCB1()),
            lambda s: s.memory.steps.__setitem__(0, 10**6),
            "steps must be those of the window",
        ),
        (
            Windowed(UCB1()),
            lambda s: s.memory.rewards.__setitem__(0, 2.0),
            "rewards must be numbers from 0 to 1",
        ),
        (Windowed(UCB1()), lambda s: setattr(s.memory, "next", 10**6), "next must be an entry"),
        (Restarting(UCB1()), lambda s: s.memory.detector.counts.fill(10**6), "counts must fit the window"),
    ],
)
def test_a_number_that_does_not_belong_is_refused(policy, change, message):
    with pytest.raises(ValueError, match=message):
        forged_record(policy, 3, change)


# -- graphs -----------------------------------------------------------------------------------------


@each(
    ("change", "message"),
    [
        ({"kind": "Links"}, "no feedback graph of kind 'Links'"),
        ({"directed": 1}, "directed must be true or false"),
        (
            {"edges": {"dtype": "int64", "shape": [2, 2], "data": "AAAA"}},
            "does not have the size that it says",
        ),
        ({"edges": encode_array(np.array([[0, 5]]))}, "two of the 5 arms, which begin with 0, got arm 5"),
        ({"edges": encode_array(np.array([[0, 1], [2, -1]]))}, r"got \(2, -1\) as pair 1"),
        ({"edges": encode_array(np.array([[0, 2**63 + 1]], dtype=np.uint64))}, "must join arms >= 0"),
        ({"edges": encode_array(np.array([[0.5, 1.0]]))}, "must be whole numbers"),
        ({"edges": encode_array(np.array([0, 1, 2]))}, "must be pairs"),
    ],
)
def test_damaged_graphs_are_refused(change, message):
    good = write_graph(star(5))
    assert read_graph(good, 5) == star(5)
    for wrap in (
        lambda one: one,
        lambda one: {"kind": "GraphSequence", "graphs": [good, one]},
        lambda one: {"kind": "DropOut", "base": one, "keep": 0.5},
    ):
        if "kind" not in change or wrap(good) is good:
            with pytest.raises(ValueError, match=message):
                read_graph(wrap(good | change), 5)


@each(
    ("saved", "message"),
    [
        ({"kind": "GraphSequence", "graphs": []}, "non-empty list"),
        ({"kind": "DropOut", "base": write_graph(star(5)), "keep": 2.0}, "keep must be"),
        ({"kind": "ErdosRenyiEachStep", "q": 0.5, "directed": None}, "directed must be true or false"),
        ({"kind": "ErdosRenyiEachStep", "q": "0.5", "directed": True}, "q must be"),
    ],
)
def test_damaged_graphs_that_change_are_refused(saved, message):
    with pytest.raises(ValueError, match=message):
        read_graph(saved, 5)


def test_a_small_file_of_many_graphs_does_not_ask_for_gigabytes(monkeypatch):
    monkeypatch.setenv("ABEX_MAX_BYTES", "1e6")
    with pytest.raises(UserError, match=r"the graphs that take turns would take 32\.0 MB"):
        read_graph({"kind": "GraphSequence", "graphs": [write_graph(star(2))] * 1000}, 1000)


# -- the file ---------------------------------------------------------------------------------------


def test_what_follows_from_the_policy_is_not_asked_from_the_file():
    body = saved("UCB1(scale=2.0)", 3, "none")
    assert body["state"].keys() == {"observations", "means"}
    state = read_player(sealed(body), "the player", False)._state.state
    assert state.scale == 2.0
    assert np.array_equal(state.inv_sqrt_count, inv_sqrt_counts(state.observations))
    body = {**body, "state": {**body["state"], "scale": "x"}}
    with pytest.raises(UserError, match="UcbState has other fields than its class"):
        read_player(sealed(body), "the player", False)


def test_a_small_file_does_not_ask_for_gigabytes(monkeypatch):
    body = {**saved("Uniform()", 3, "none"), "n_arms": 10**9}
    monkeypatch.setattr("abex.players.player_file.new_state", lambda *a, **k: pytest.fail("it was begun"))
    with pytest.raises(UserError, match="names must be one for each arm"):
        read_player(sealed(body), "the player", None)


def test_a_policy_of_your_own_must_be_imported_first(tmp_path):
    path = tmp_path / "player.json"
    Player(FuzzedOwn(), n_arms=3, seed=1).save(path)
    code = f"from abex import Player; Player.load({str(path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "unknown policy 'FuzzedOwn': import the module tests.fuzz.players that defines it first"
    assert message in other.stderr.splitlines()[-1]


def test_a_state_of_which_nothing_is_known_to_be_learned_plays_but_is_not_saved(tmp_path):
    player = Player(FuzzedTuple(), n_arms=3, seed=1)
    for _ in range(9):
        player.update(player.select(), 1.0)
    assert len(set(player.select(2))) == 2
    sentence = "a state that is a TupleState cannot be saved, shared or given other arms"
    with pytest.raises(UserError, match=sentence):
        player.save(tmp_path / "player.json")
    with pytest.raises(UserError, match=sentence):
        player.add_arm()
    with pytest.raises(UserError, match=sentence):
        Player.open(f"sqlite:///{tmp_path / 'shared.db'}", "mine", FuzzedTuple(), n_arms=3)


def test_a_loaded_policy_of_your_own_runs_where_every_index_is_looked_at():
    """An index that nobody declared reaches compiled code only where a person says so."""
    body = saved("FuzzedOwn(rate=0.5)", 9, "none")
    for said, compiled in ((None, False), (True, True)):
        player = read_player(sealed(body), "the player", said)
        play(player)
        assert player._state.compiled is compiled
    array = np.array([10**6])
    wrong = json.loads(json.dumps(body))
    wrong["state"]["last"] = {"dtype": "int64", "shape": [1], "data": _base64(array)}
    player = read_player(sealed(wrong), "the player", None)
    with pytest.raises(
        UserError, match=r"of FuzzedOwn.* failed at line .* IndexError: index 1000000 is out of bounds"
    ):
        [player.update(player.select(), 1.0) for _ in range(9)]
    with pytest.raises(UserError, match="last must be numbers of arms"):
        read_player(sealed({**wrong, "policy": "FuzzedDeclared(rate=0.5)"}), "the player", True)
    wrong["state"]["gains"] = {"dtype": "float64", "shape": [9], "data": _base64(np.full(9, np.inf))}
    with pytest.raises(UserError, match="gains must be finite numbers"):
        read_player(sealed(wrong), "the player", True)


def test_weights_that_are_shared_sum_to_one():
    wrong = saved("Exp3S()", 4, "none")
    weights = np.array([0.5, 0.25, 0.25, 0.001])
    wrong["state"]["weights"] = {"dtype": "float64", "shape": [4], "data": _base64(weights)}
    with pytest.raises(UserError, match="weights must be probabilities that sum to 1"):
        read_player(sealed(wrong), "the player", False)


def _base64(array):
    import base64

    return base64.b64encode(array.tobytes()).decode()


def test_forged_files_work_or_are_refused():
    """In a process of its own: a crash or a hang ends it, and its last line says which case it was."""
    other = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.players", "300", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert other.returncode == 0, other.stderr.strip().splitlines()[-30:]
    found = json.loads(other.stdout)
    assert not found["failures"], found["failures"][:5]
    assert found["outcomes"]["worked"] > 35
    assert found["outcomes"]["refused"] > 110


# -- writing ----------------------------------------------------------------------------------------


def test_a_new_file_has_the_mode_of_any_other_and_the_umask_stays(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask of all threads was changed"))
        write_atomically(tmp_path / "new", b"1")
        monkeypatch.undo()
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_links_are_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "player.json", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"1", b"2"):  # dangling at first
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link", "player.json", "real"]


def test_what_is_no_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"content")
    reader.join()
    assert found == [b"content"]
    with pytest.raises(UserError, match="cannot write"):
        write_atomically(tmp_path, b"content")


@each(
    ("change", "message"),
    [
        (
            lambda body: body.update(names=encode_array(np.array([0, 1, -(2**63)]))),
            "names must be increasing",
        ),
        (lambda body: body["tallies"].update(table=encode_array(np.full((4, 3), 2.0**53))), None),
        (lambda body: body["tallies"].update(rewarded=2**53), None),
        (lambda body: body.update(steps=10**18), None),
        (lambda body: body.update(next_name=2**62), "has had all the arms"),
    ],
)
def test_the_largest_numbers_of_a_file_are_refused_or_played_and_saved_again(change, message):
    player = Player(UCB1(), 3, seed=1)
    for _ in range(10):
        player.update(player.decide(), 1.0)
    body = json.loads(player_text(player))["player"]
    change(body)

    def lived():
        again = read_player(sealed(body), "the player", False)
        for _ in range(5):
            again.update(again.decide(), 1.0)
        again.add_arm()
        read_player(player_text(again), "the player", False)

    if message is None:
        lived()
    else:
        with pytest.raises(UserError, match=message):
            lived()


@each(
    ("change", "message"),
    [
        (lambda body: body.pop("steps"), "missing required field `steps`"),
        (lambda body: body["tallies"].pop("expired"), r"missing required field `expired` - at `\$\.tallies`"),
        (lambda body: body.pop("max_pending"), "missing required field `max_pending`"),
        (lambda body: body.update(steps=-1), r"at `\$\.steps`"),
        (lambda body: body.update(steps=1.5), r"at `\$\.steps`"),
        (lambda body: body.update(steps=float("nan")), "damaged or not a saved player"),
        (lambda body: body.update(steps=10**4000), r"at `\$\.steps`"),
        (lambda body: body.update(next_name=True), r"at `\$\.next_name`"),
        (lambda body: body.update(n_arms=2**70), r"at `\$\.n_arms`"),
        (lambda body: body["settings"].update(high="1"), r"at `\$\.settings\.high"),
        (lambda body: body["settings"].update(low=1.0, high=0.0), "rewards must be a range"),
        (
            lambda body: body["settings"].update(conversions="sum"),
            "conversions='sum' counts what comes within a window",
        ),
        (lambda body: body["settings"].update(weighs=True), "a window is when silence counts"),
        (lambda body: body["settings"].update(expire=0), r"at `\$\.settings\.expire`"),
        (lambda body: body["settings"].update(weighs=1), r"at `\$\.settings\.weighs`"),
        (lambda body: body.update(lives=[7]), r"at `\$\.lives"),
        (lambda body: body.update(labels="abc"), r"at `\$\.labels`"),
        (lambda body: body.update(names=encode_array(np.arange(3.0))), r"at `\$\.names`"),
        (lambda body: body.update(names=encode_array(np.arange(3)[None])), "names must be one for each arm"),
        (lambda body: body["tallies"].update(rewarded=2**53 + 1), r"at `\$\.tallies\.rewarded`"),
        (
            lambda body: body["tallies"].update(table=encode_array(np.full((4, 3), -1.0))),
            "table must be four numbers",
        ),
        (
            lambda body: body["tallies"].update(table=encode_array(np.ones((3, 3)))),
            "table must be four numbers",
        ),
        (lambda body: body["tallies"].update(recent=encode_array(np.zeros((2, 2), np.int64))), "recent must"),
        (lambda body: body["tallies"].update(recent=encode_array(np.zeros(1001, np.int64))), "recent must"),
        (lambda body: body["pending"].append({"kind": "decision", "id": "x"}), r"at `\$\.pending\["),
        (lambda body: body["pending"][0].update(unit="unit"), None),
        (lambda body: body["pending"][0].update(more=1), "unknown field `more`"),
        (lambda body: body["pending"][0].update(law="AAA="), "a law must be 4 bytes an arm"),
        (lambda body: body["pending"][0].update(law="A" * 5344), "length <= 4000"),
        (lambda body: body["pending"][0].update(unit=" "), "unit must be"),
        (lambda body: body.update(seen_keys=["key"] * 10_001), r"at `\$\.seen_keys`"),
        (lambda body: body["bets"].update(order=["a"]), "bets must wait"),
        (
            lambda body: body["bets"]["known"].update(evidence=encode_array(np.full(3, np.nan))),
            "evidence must be",
        ),
        (
            lambda body: body["bets"]["known"].update(wealth=encode_array(np.ones((2, 8)))),
            "wealth must be an array",
        ),
        (
            lambda body: body["bets"]["known"].update(wealth=encode_array(np.full((3, 8), -1.0))),
            "wealth must be numbers",
        ),
        (
            lambda body: body["bets"]["known"].update(sums=encode_array(np.full(3, 9.0))),
            "sums must be of rewards",
        ),
        (lambda body: body["bets"].update(closed={"a": None}), "closed decisions must be"),
        (lambda body: body["random"].update(has_uint32=2), "random must be"),
        (lambda body: body["random"]["state"].update(state=2**128), "random must be"),
    ],
)
def test_what_a_field_cannot_hold_is_refused_in_a_sentence_that_names_it(change, message):
    player = Player(UCB1(), 3, seed=1)
    player.update(player.decide(), 1.0)
    player.decide()
    body = json.loads(player_text(player))["player"]
    change(body)
    if message is None:
        assert read_player(sealed(body), "the player", False).pending()
    else:
        with pytest.raises(UserError, match=f"cannot load the player: .*{message}"):
            read_player(sealed(body), "the player", False)
