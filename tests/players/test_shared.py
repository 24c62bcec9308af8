"""Players that many processes share, on SQLite and on a PostgreSQL server of our own."""

import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta

import numpy as np
import pytest

from abex import Player, UserError
from abex.graphs import erdos_renyi
from abex.kinds import saved, written
from abex.players import UnavailableError
from abex.players import journal as journals
from abex.players.events import ArmRemoved, Decided, Rewarded, encode
from abex.players.ids import Life
from abex.players.journal import journal_at
from abex.players.journal_log import decision_log
from abex.players.requests import DecideRequest, RewardRequest, TooManyPendingError
from tests import postgresql
from tests.carried_out import carried_out
from tests.each import each, each_group
from tests.examples import all_examples, by_class
from tests.players.storm import (
    ON_GRAPHS,
    RECOMMENDED,
    ROOT,
    TO_CORRECT,
    Storm,
    make_players,
    replayed,
    verify,
)
from tests.players.test_terms import Clock
from tests.waiting import PATIENCE, wait_until


def alike(*players):
    """Whether all are in the same state after the same events."""
    for player in players:
        player.refresh()
    for player in players:
        player.refresh()
    return len({player.text() for player in players}) == 1


# -- what is shared -------------------------------------------------------------------------------------


def test_two_processes_share_what_they_learn(url):
    first = Player.open(url, "banner", "Thompson", arms=["red", "green", "blue"])
    second = Player.open(url, "banner")
    mine = [first.decide() for _ in range(10)]
    first.flush()
    assert [second.update(decision.id, 0.5) for decision in mine[:5]] == [True] * 5
    assert [first.update(decision.id, 0.5) for decision in mine[:6]] == [False] * 5 + [True]
    assert second.update("red", True, also={"blue": False})
    assert alike(first, second)
    assert repr(first.summary()) == repr(second.summary())
    first.add_arm("black")
    second.rename_arm("red", "crimson")
    second.remove_arm("green")
    assert alike(first, second)
    assert first.arms == second.arms == ["crimson", "blue", "black"]
    with pytest.raises(UserError, match="there is an arm 'black' already"):
        second.add_arm("black")
    third = Player.open(url, "banner")
    assert alike(first, second, third)
    _, _, text, _ = replayed(url, "banner", set())
    assert text == third.text()
    for player in (first, second, third):
        player.close()
    with pytest.raises(UserError, match="the player 'banner' is closed"):
        first.decide()


EXAMPLES = all_examples()


@each_group("policy", by_class(EXAMPLES))
def test_drawing_changes_nothing_that_is_learned(policy):
    """So the state of a replica is a function of the events it was given, whatever it decided itself."""
    for n_arms in (3, 70):
        graph = erdos_renyi(n_arms, 0.3, seed=1) if policy.needs_graph else None
        if policy.needs_graph and n_arms > 3:
            continue
        drawing, still = (
            Player(policy, n_arms, graph=graph, horizon=500, seed=1, compiled=False)._state for _ in "ab"
        )
        drawing.draws_leave_state = still.draws_leave_state = True
        rng = np.random.default_rng(2)
        for step in range(1, 2 * n_arms + 20):
            for _ in range(3):
                drawing.draw(step, rng)
            arm, reward = int(rng.integers(n_arms)), float(rng.integers(3)) / 2
            weights = np.full(n_arms, 1.0 / n_arms)
            for replica in (drawing, still):
                replica.set_propensity(weights, arm)
                replica.learn(step, arm, [(arm, reward)], np.random.default_rng(step))
        assert written(saved(drawing.state)) == written(saved(still.state))


@pytest.mark.parametrize(
    "policy",
    [
        "Exp3(gamma=0.2)",
        "Exp3IX",
        "ABE(eta=1.0, c=1.0)",
        "UCB1",
        "BoltzmannGumbel",
        "TsallisINF",
        "Windowed(UCB1, width=20)",
    ],
)
def test_replicas_are_alike_whatever_the_policy(policy, tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    players = [
        Player.open(url, "x", policy, n_arms=5, horizon=100, seed=seed, snapshot_every=40)
        for seed in range(3)
    ]
    rng, waiting = np.random.default_rng(1), []
    for _ in range(120):
        waiting += [players[rng.integers(3)].decide().id]
        if rng.random() < 0.8:
            one = waiting.pop(rng.integers(len(waiting)))
            players[rng.integers(3)].update(one, float(rng.random()))
    assert alike(*players)
    _, _, text, _ = replayed(url, "x", set())
    with Player.open(url, "x") as opened:
        assert opened.text() == text == players[0].text()
    for player in players:
        player.close()


def test_a_late_reward_is_weighed_by_the_distribution_of_its_own_decision(tmp_path):
    """In whatever process the reward comes, and whatever was learned since."""
    url = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    with Player.open(url, "x", "Exp3(gamma=0.5)", n_arms=2) as first, Player.open(url, "x") as second:
        late = first.decide()
        for _ in range(30):
            decision = first.decide()
            first.update(decision, float(decision.arm == 0))
        second.refresh()
        before = second._state.state.scores.copy()
        assert second.update(late.id, 1.0)
        gained = (second._state.state.scores - before)[late.arm]
        assert gained == pytest.approx(0.5 / 2 * 1.0 / 0.5)  # the first decision was fair
        log = first.log()
        assert log["probability"][0] == 0.5 == late.probability
        assert log["probability"].between(0.25, 0.75).all()


def test_one_commit_serves_all_threads_that_wait(url):
    """Group commit: many threads report at once, few transactions are needed."""
    with Player.open(url, "x", "UCB1", n_arms=3) as player:
        decisions = [player.decide() for _ in range(120)]
        player.flush()
        appended, journal = [], player.store._journal
        plain = journal.append

        def counted(batch):
            appended.append(len(batch[player.id]))
            wait_until(lambda: len(player._follower.own) >= 12 - len(finished))  # while it waits for the disk
            return plain(batch)

        journal.append = counted
        results, finished = [], []

        def report(mine):
            results.extend(player.update(decision, 1.0) for decision in mine)
            finished.append(mine)

        threads = [threading.Thread(target=report, args=[decisions[i::12]]) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 120
        assert len(appended) <= 21  # each thread's reward is in this commit or in the next one


def test_decisions_reach_the_journal_by_themselves(url, monkeypatch):
    monkeypatch.setattr("abex.players.shared_player.LATE_DECISIONS", PATIENCE)
    with Player.open(url, "x", "UCB1", n_arms=3) as first, Player.open(url, "x") as second:
        decision = first.decide()
        assert second.update(decision.id, 1.0)  # waits for it
        with pytest.raises(UserError, match="was never made by this player"):
            second.update("01890000-0000-7000-8000-000000000001", 1.0)


def test_decisions_expire_once_in_all_processes(url):
    clock = Clock()
    options = {"expire": timedelta(seconds=10), "unrewarded": 0.0}
    first = Player.open(url, "x", "UCB1", n_arms=3, clock=clock, **options)
    second = Player.open(url, "x", clock=clock)
    early = first.decide()
    first.flush()
    clock.now += 9
    late = second.decide()
    second.flush()
    clock.now += 2
    for player in (first, second):
        player.refresh()
    assert alike(first, second)
    assert [d.id for d in first.pending()] == [late.id]
    assert not second.update(early.id, 1.0)
    assert first._state.tallies.expired == 1
    assert first.log()["status"].tolist() == ["expired", "waiting"]
    assert first.log()["reward"][0] == 0.0
    first.close()
    second.close()


def test_a_forked_process_has_a_connection_and_ids_of_its_own(url):
    player = Player.open(url, "x", "Uniform", n_arms=100)
    early = player.decide()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            made = [player.decide() for _ in range(20)]
            code = 0 if player.update_many([(d, 1.0) for d in made]) == 20 else 2
            player.flush()
        finally:
            os._exit(code)
    made = [player.decide() for _ in range(20)]
    assert player.update_many([(d, 1.0) for d in [early, *made]]) == 21
    assert os.waitpid(child, 0)[1] == 0
    player.refresh()
    assert player._state.steps == 41
    assert player._state.tallies.observations.sum() == 41
    player.close()


def test_a_summary_counts_what_this_process_has_just_decided(url):
    with Player.open(url, "x", "UCB1", n_arms=3) as player:
        for _ in range(3):
            player.decide()
        found = player.summary()
        assert sum(row.pulls for row in found) == 3
        assert "3 decisions, 0 rewarded, 3 waiting" in found.caption


def test_a_summary_is_told_although_the_store_is_away(tmp_path):
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "UCB1", n_arms=3, deadline=0.2) as player:
        player.update(player.decide(), 1.0)
        (tmp_path / "shop.db").rename(tmp_path / "elsewhere")
        player.decide()
        assert "1 decision, 1 rewarded" in player.summary().caption
        (tmp_path / "elsewhere").rename(tmp_path / "shop.db")
        player.refresh()


def test_a_pickle_opens_the_same_player(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "x", "UCB1", n_arms=3) as player:
        decision = player.decide()
        player.flush()
        twin = pickle.loads(pickle.dumps(player))
        assert twin.update(decision, 1.0)
        twin.close()
        apart = player.copy()  # a player of its own, in the present state
        player.refresh()
        assert apart.pending() == [] or apart.update(decision, 0.0)
        assert not player.update(decision, 0.0)


def test_players_of_one_store_are_told_apart(url):
    with Player.open(url, "a", "UCB1", n_arms=3) as one, Player.open(url, "b", "UCB1", n_arms=3) as two:
        decision = one.decide()
        one.flush()
        with pytest.raises(UserError, match="was never made by this player"):
            two.update(decision.id, 1.0)
        assert one.seq() == 1
        assert two.seq() == 0


@each(
    ("arguments", "message"),
    [
        (
            {},
            r"there is no player 'banner' in .* \(did you mean 'banners'\?\): there are banners; `abex player create`",
        ),
        ({"name": "banners", "policy": "UCB1", "n_arms": 3}, "is another one: policy is 'Thompson"),
        (
            {"name": "banners", "policy": "Thompson", "n_arms": 4},
            'has the arms 0, 1, 2, and not 3: on_new_arms="add" adds what is new',
        ),
        (
            {"name": "banners", "policy": "Thompson", "arms": ["a", "b", "c"]},
            "is another one: it has numbered arms, not 'a', 'b', 'c'",
        ),
        ({"name": "", "policy": "Thompson", "n_arms": 3}, "the name of a player must be"),
        ({"policy": "Thompson"}, "a player needs arms"),
        ({"policy": "Thompson", "n_arms": 3, "freshness": -1}, "freshness must be"),
        ({"policy": "Thompson", "n_arms": 3, "snapshot_every": 0}, "snapshot_every must be"),
        ({"policy": "Thompson", "n_arms": 3, "seed": -1}, "seed must be"),
    ],
)
def test_a_player_that_cannot_be_opened_says_why(tmp_path, arguments, message):
    url = f"sqlite:///{tmp_path}/shop.db"
    Player.open(url, "banners", "Thompson", n_arms=3).close()
    with pytest.raises(UserError, match=message):
        Player.open(**{"url": url, "name": "banner"} | arguments)


# -- snapshots, compaction, formats ---------------------------------------------------------------------


def test_snapshots_make_opening_begin_late_and_compaction_keeps_the_state(url):
    player = Player.open(url, "x", "Exp3(gamma=0.2)", n_arms=4, snapshot_every=50)
    for step in range(60):
        player.update(player.decide(), float(step % 2))
    waiting = player.decide()
    player.refresh()

    found = wait_until(lambda: player.store.do(lambda journal: journal.snapshot(player.id)))
    assert 50 <= found[0] <= 121
    behind = Player.open(url, "x")
    text = player.text()
    assert behind.text() == text
    player.update(player.decide(), 1.0)
    count = player.compact()
    assert count >= 100
    assert player.store.do(lambda journal: journal.read(player.id, 0, 10)) == []
    assert not behind.update(waiting.id, 1.0) or alike(
        player, behind
    )  # reads the snapshot, since events are gone
    assert alike(player, behind)
    opened = Player.open(url, "x")
    assert alike(player, opened)
    player.compact()
    assert player.compact() == 0
    for one in (player, behind, opened):
        one.close()


def test_compaction_may_keep_what_is_recent(tmp_path):
    clock = Clock()
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "UCB1", n_arms=2, clock=clock) as player:
        for _ in range(5):
            player.update(player.decide(), 1.0)
        clock.now += 3600
        for _ in range(3):
            player.update(player.decide(), 1.0)
        assert player.compact(keep=timedelta(minutes=30)) == 10
        assert len(player.log()) == 3
        with pytest.raises(UserError, match="keep must be a timedelta"):
            player.compact(keep=5)


def test_a_newer_journal_is_refused(url, monkeypatch):
    newer = journals.FORMAT + 1
    monkeypatch.setattr("abex.players.journal.FORMAT", newer)
    Player.open(url, "x", "UCB1", n_arms=2).close()
    monkeypatch.undo()
    with pytest.raises(
        UserError,
        match=rf"was written by a newer abex \(format {newer}, this one has {newer - 1}\): upgrade abex",
    ):
        Player.open(url, "x")


def test_words_of_all_kinds_come_back_as_they_were(url):
    words = ['we"ird\\', "{a,b}", "NULL", "naïve \N{SNOWMAN}", "' or 1", "%s"]
    with Player.open(url, "x", "EXP3IX(eta=0.1)", arms=words) as player:
        asked = [DecideRequest((word,), f"{word} again") for word in words]
        made = [one for (one,) in carried_out(player, *asked)]
        told = [(one.id, 0.1 + 0.2, {arm: 0.3 for arm in words if arm != one.arm}) for one in made[:3]]
        assert carried_out(player, RewardRequest(told)) == [[True] * 3]
        player.rename_arm("NULL", '"\\null"')
        with Player.open(url, "x") as other:
            assert alike(player, other)
            assert '"\\null"' in other.arms
            assert [one.unit for one in other._state.pending.values()] == words[3:]


def test_damage_in_the_journal_is_named(tmp_path):
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=2) as player:
        player.update(player.decide(), 1.0)
    base = sqlite3.connect(path)
    (before,) = base.execute("SELECT body FROM abex_events WHERE seq = 2").fetchone()
    body = json.loads(before)
    for changed in (
        body | {"reward": 7.0},
        body | {"reward": "x"},
        body | {"kind": "nonsense"},
        body | {"decision": None},
        body | {"something": 1},
        7,
    ):
        base.execute("UPDATE abex_events SET body = ? WHERE seq = 2", (json.dumps(changed).encode(),))
        base.commit()
        with pytest.raises(UserError, match="the journal is damaged at event 2 of 'x'"):
            Player.open(f"sqlite:///{path}", "x")
    base.execute("UPDATE abex_events SET body = ? WHERE seq = 2", (before,))
    base.commit()
    base.execute("UPDATE abex_players SET definition = replace(definition, 'UCB1', 'UCBV')")
    base.commit()
    with pytest.raises(UserError, match="its checksum does not fit"):
        Player.open(f"sqlite:///{path}", "x")
    base.close()


# -- the log --------------------------------------------------------------------------------------------


def test_the_log_tells_of_every_decision(tmp_path):
    graph = erdos_renyi(4, 0.6, seed=2)
    with Player.open(
        f"sqlite:///{tmp_path}/shop.db", "x", "Exp3SET(eta=0.2)", n_arms=4, graph=graph, rewards=(0, 10)
    ) as player:
        for step in range(20):
            seen = player.observation_probabilities()
            decision = player.decide()
            others = {arm: 5.0 for arm in range(4) if arm != decision.arm and step % 2}
            player.update(decision, 10.0 * (step % 3 == 0), others)
            row = player.log().iloc[-1]
            assert (row["decision"], row["arm"], row["status"]) == (decision.id, decision.arm, "rewarded")
            assert row["reward"] == 10.0 * (step % 3 == 0)
            assert json.loads(row["also"] or "{}") == {str(arm): 5.0 for arm in others}
            observed = json.loads(row["observed"])
            assert observed[str(decision.arm)] == pytest.approx(seen[decision.arm])
            assert all(observed[arm] == pytest.approx(seen[int(arm)]) for arm in observed)
        player.decide()
        log = player.log()
        assert log["status"].tolist() == ["rewarded"] * 20 + ["waiting"]
        assert log["decision"].is_monotonic_increasing


def test_a_decision_on_an_arm_that_is_gone_waits_for_nothing_for_player_and_log(tmp_path):
    """A process that had not heard of it yet has chosen the arm."""
    name = Life().next_id()
    events = (ArmRemoved("a", 1, 0), Decided(name, 2, 0, 1), Rewarded("b", 3, name, None, 1.0))
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "Uniform", n_arms=2) as player:
        outcomes = [player._state.apply(event, None) for event in events]
        log = decision_log(enumerate(map(encode, events), 1), player.definition)
    assert outcomes[-1] is False
    assert log["status"].tolist() == ["forgotten"]
    assert log["reward"].isna().all()


def test_the_reward_of_an_arm_is_that_of_its_latest_decision_for_player_and_log(tmp_path):
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "Uniform", n_arms=1) as player:
        first, latest = player.decide(), player.decide()
        player.update(0, 1.0)
        assert player.pending() == [first]
        log = player.log().set_index("decision")["status"]
        assert log.to_dict() == {first.id: "waiting", latest.id: "rewarded"}


def test_no_request_may_exceed_the_decisions_that_may_wait(tmp_path):
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "Uniform", n_arms=5) as player:
        asked = DecideRequest([None] * 4), DecideRequest([None] * 3), DecideRequest()
        refused, served, late = carried_out(player, *asked, most_open=3)
        assert isinstance(refused, TooManyPendingError)
        assert isinstance(late, TooManyPendingError)
        assert player.pending() == served


# -- under fire -----------------------------------------------------------------------------------------


def test_every_policy_that_is_recommended_is_under_fire():
    page = (ROOT / "docs" / "which_policy.md").read_text()
    rows = page.partition("| your problem | play |")[2].partition("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`([A-Z]\w+)", row)}
    assert len(rows) == 5
    assert named == {re.match(r"\w+", policy)[0] for policy in RECOMMENDED}
    graph = next(row for row in rows if "graph" in row)
    assert set(re.findall(r"`(\w+)", graph)) == set(ON_GRAPHS)


def test_processes_may_be_killed_at_any_moment(url, tmp_path):
    names = make_players(url, RECOMMENDED, ON_GRAPHS, TO_CORRECT)
    storm = Storm(url, names, tmp_path, places=3, total=500, seed=1)
    storm.rage(kills=6, pause=0.1)
    found = verify(url, names, tmp_path)
    assert storm.kills >= 3
    assert found["rewards"] >= 1500
    assert found["states"] >= 3 * len(names)


# -- faults ---------------------------------------------------------------------------------------------


def faulty(player, message):
    """A reward is refused with one sentence, deciding goes on, and nothing is lost."""
    with pytest.raises(UnavailableError, match=message) as raised:
        player.update(player.decide(), 1.0)
    assert "\n" not in str(raised.value)
    return [player.decide() for _ in range(3)]


def test_a_file_that_goes_away_and_comes_back(tmp_path):
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3) as player:
        player.update(player.decide(), 1.0)
        player.store.do(lambda journal: journal.close())  # the log is written back
        path.rename(tmp_path / "elsewhere")
        made = faulty(player, r"cannot (open|write to) the journal .*no such file")  # it may be open again
        (tmp_path / "elsewhere").rename(path)
        assert all(player.update(decision, 1.0) for decision in made)
        assert len(player.log()) == 5


def test_a_file_that_is_deleted_while_it_is_open(tmp_path):
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3) as player:
        player.update(player.decide(), 1.0)
        path.unlink()
        with pytest.raises(UnavailableError, match=r"cannot write to the journal .*no such file"):
            player.update(0, 1.0)
        for rest in tmp_path.glob("shop.db-*"):
            rest.unlink()
        Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3).close()  # somebody begins again
        assert player.update(0, 1.0)
        assert player.seq() == 2  # the reward that was kept, and this one


def test_a_file_that_is_locked(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.players.sqlite_journal.PATIENCE", 0.2)
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3) as player:
        hold = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], os.O_RDWR), 2); print(1, flush=True);"
        hold += "time.sleep(10_000)"
        with subprocess.Popen([sys.executable, "-c", hold, f"{path}-lock"], stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            made = faulty(player, "another process has been writing to it for more than 0.2 seconds")
            other.kill()
        assert all(player.update(decision, 1.0) for decision in made)


def test_a_full_disk(tmp_path, monkeypatch):
    with Player.open(f"sqlite:///{tmp_path}/shop.db", "x", "UCB1", n_arms=3) as player:
        player.update(player.decide(), 1.0)

        def full(journal):
            pages = journal._run("PRAGMA page_count").fetchone()[0]
            journal._run(f"PRAGMA max_page_count={pages}")

        connect = player.store._journal._connect
        monkeypatch.setattr(
            player.store._journal, "_connect", lambda create: (connect(create), full(player.store._journal))
        )
        player.store.do(full)
        made = [player.decide() for _ in range(2000)]
        with pytest.raises(UnavailableError, match=r"cannot write to the journal .*: the disk is full"):
            player.update(made[0], 1.0)
        monkeypatch.undo()
        player.store.do(lambda journal: journal.close())
        # a new connection has no such limit; the first reward was kept
        assert player.update_many([(decision, 1.0) for decision in made]) == 1999
        assert player._state.steps == 2001


def test_a_file_that_may_not_be_written(tmp_path):
    path = tmp_path / "shop.db"
    Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3).close()
    player = Player.open(f"sqlite:///{path}", "x")
    player.store.do(lambda journal: journal._run("PRAGMA query_only=ON"))
    made = faulty(player, "cannot write to the journal .*: the file or its folder may not be written")
    assert all(player.update(decision, 1.0) for decision in made)  # a new connection may
    player.close()


@each(
    ("url", "message"),
    [
        ("sqlite://", "sqlite:///shop.db"),
        ("sqlite:///:memory:", "sqlite:///shop.db"),
        ("sqlite:///x.db?synchronous=never", "unknown synchronous 'never'"),
        ("sqlite:///x.db?cache=1", "has the option synchronous, not 'cache'"),
        ("sqlite:////no_such_folder/x.db", "cannot open the journal .*no such file or directory"),
        ("sqlite:////tmp", "it is a folder"),
        ("mysql://x", "and 'mysql' is neither"),
        ("shop.db", "a store must be an address"),
        (7, "a store must be an address"),
        ("postgresql+asyncpg://x/y", "uses psycopg, not 'postgresql.asyncpg'"),
        ("postgresql://u:secret@127.0.0.1:1/x", "cannot open the journal .*the server cannot be reached"),
    ],
)
def test_addresses_that_lead_nowhere(url, message):
    with pytest.raises(UserError, match=message) as raised:
        Player.open(url, "x", "UCB1", n_arms=2)
    assert "secret" not in str(raised.value)


def test_a_file_that_is_no_database_or_another_one(tmp_path):
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(UnavailableError, match="the file is damaged or no SQLite database"):
        Player.open(f"sqlite:///{tmp_path}/text.db", "x", "UCB1", n_arms=2)
    base = sqlite3.connect(tmp_path / "other.db")
    base.execute("CREATE TABLE abex_format (version INTEGER)")
    base.execute("CREATE TABLE abex_players (something TEXT)")
    base.execute("INSERT INTO abex_format VALUES (1)")
    base.commit()
    base.close()
    with pytest.raises(UnavailableError, match="its tables are not those of abex"):
        Player.open(f"sqlite:///{tmp_path}/other.db", "x", "UCB1", n_arms=2)


def test_a_server_that_refuses(server):
    for url, message in (
        (server.url(password="wrong"), "the user or the password is wrong"),
        (server.url(user="nobody"), "the user or the password is wrong"),
        (server.url(database="nowhere"), "there is no such database"),
        (server.url() + "?options=-cdefault_transaction_read_only%3Don", "the database is read-only"),
    ):
        with pytest.raises(UnavailableError, match=message) as raised:
            Player.open(url, "x", "UCB1", n_arms=2)
        assert postgresql.PASSWORD not in str(raised.value)


def test_a_server_that_crashes_and_comes_back(server, schema):
    """Also the last test of the server, since it takes it down: acknowledged events are there, decisions meanwhile too."""
    with Player.open(schema, "x", "Exp3(gamma=0.2)", n_arms=3) as player:
        assert player.update_many([(player.decide(), 1.0) for _ in range(50)]) == 50
        server.stop()
        made = faulty(player, "cannot .* the journal")
        server.start()
        assert all(player.update(decision, 1.0) for decision in made)
        assert player._state.tallies.rewarded == 54  # the one that was kept, too
        _, _, text, _ = replayed(schema, "x", set())
        assert player.text() == text


def test_who_waits_for_another_to_make_the_tables_finds_them(server, schema):
    import psycopg

    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    quick, slow = journal_at(schema), journal_at(schema)
    with psycopg.connect(schema) as other, psycopg.connect(server.url(), autocommit=True) as looking:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('abex_format'))")
        threads = [threading.Thread(target=one.connect, args=[True]) for one in (quick, slow)]
        [thread.start() for thread in threads]  # both have seen that there are none
        wait_until(lambda: looking.execute(waiting).fetchone()[0] == 2)
        other.rollback()
        [thread.join() for thread in threads]
    assert quick.count() == slow.count() == 0
    quick.close()
    slow.close()


def test_decisions_do_not_pile_up_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.players.shared_player.MOST_UNSAVED", 20)
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3) as player:
        player.store.do(lambda journal: journal.close())
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(UnavailableError, match="20 decisions and rewards wait to be written"):
            [player.decide() for _ in range(30)]
        (tmp_path / "elsewhere").rename(path)
        player.refresh()
        player.decide()


def test_a_deleted_player_is_missed(tmp_path):
    path = tmp_path / "shop.db"
    player = Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=3)
    base = sqlite3.connect(path)
    base.execute("DELETE FROM abex_players")
    base.commit()
    base.close()
    with pytest.raises(UnavailableError, match="is gone from the journal"):
        player.update(0, 1.0)
    player.close()
    assert journal_at(f"sqlite:///{path}").display_url == repr(f"sqlite:///{path}")
