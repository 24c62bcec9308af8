"""Many light players of one store, deadlines, deploys: what `Store` promises."""

import gc
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from abex import Player, UserError
from abex.players import Store, UnavailableError
from abex.players.changes import Change
from abex.players.sqlite_journal import SqliteJournal
from tests.each import each
from tests.players.hosts import Proxy
from tests.waiting import PATIENCE, wait_until

ARMS = ["red", "green", "blue"]


# -- many players ---------------------------------------------------------------------------------------


def test_any_number_of_players_have_one_thread_and_one_connection(url):
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with Store.open(url) as store:
        players = [store.player(f"player {number}", "UCB1", n_arms=3) for number in range(200)]
        decisions = [player.decide() for player in players]
        assert all(player.update(one, 1.0) for player, one in zip(players, decisions, strict=True))
        assert threading.active_count() <= threads + 1
        assert len(os.listdir("/proc/self/fd")) <= files + 6
        assert store.player("player 7") is players[7]
        assert len(store.names()) == 200
        early = [player.decide() for player in players]
    with Store.open(url) as store:  # closing has written the decisions of all
        assert all(store.player(f"player {number}").update(one, 0.0) for number, one in enumerate(early))
        with pytest.raises(UserError, match="is closed"):
            players[0].decide()


def test_opening_a_player_asks_the_journal_once(url, monkeypatch):
    with Store.open(url) as store:
        store.player("banner", "UCB1", n_arms=3)
    with Store.open(url) as store:
        store.names()
        submit, run, journal = store.submit, store._journal._run, store._journal
        errands, statements = [], []
        monkeypatch.setattr(store, "submit", lambda work, *more: errands.append(work) or submit(work, *more))
        monkeypatch.setattr(journal, "_run", lambda sql, *values: statements.append(sql) or run(sql, *values))
        assert store.player("banner").update(store.player("banner").select(), 1.0)
        assert len(errands) == 1
        assert sum("abex_players WHERE name" in sql for sql in statements) == 1


def test_an_open_player_takes_20_kilobytes_at_most(tmp_path):
    """Memory that Python counts; that of the allocator is measured by `benchmarks.many_players`."""
    count = 100
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        for number in range(count + 1):
            store.player(f"player {number}", "Thompson", n_arms=3).close()
        store.player(f"player {count}").decide()
        gc.collect()
        tracemalloc.start(1)
        players = [store.player(f"player {number}") for number in range(count)]
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken / len(players) < 20_000


def test_names_are_routed_to_several_stores_as_the_page_of_sizes_shows(tmp_path):
    """The same name leads to the same store, in every process, and each player lives in one."""
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    code = code.replace(
        "postgresql://abex@db{number}/shop", f"sqlite:///{tmp_path}/{{number}}.db?synchronous=normal"
    )
    names, homes = [f"page {number}" for number in range(30)], []
    for _ in range(2):
        here = {}
        exec(code, here)
        for name in names:
            player = here["player"](name, "UCB1", n_arms=2)
            player.update(player.decide(), 1.0)
        homes.append([store.names() for store in here["STORES"]])
        [store.close() for store in here["STORES"]]
    assert homes[0] == homes[1]
    assert sorted(name for home in homes[0] for name in home) == sorted(names)
    assert all(homes[0])


def test_rewards_of_many_players_share_a_commit(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        players = [store.player(f"player {number}", "UCB1", n_arms=3) for number in range(12)]
        decisions = [player.decide() for player in players]
        [player.flush() for player in players]
        commits, plain, journal = [], store._journal.append, store._journal

        def counted(batch):
            commits.append(len(batch))
            wait_until(lambda: sum(bool(player._follower.own) for player in players) >= 12 - len(done))
            return plain(batch)

        journal.append = counted
        done = []

        def report(player, decision):
            done.append(player.update(decision, 1.0))

        threads = [
            threading.Thread(target=report, args=pair) for pair in zip(players, decisions, strict=True)
        ]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert done == [True] * 12
        assert len(commits) <= 2


def test_a_store_of_one_address_is_shared_in_a_process(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "a", "UCB1", n_arms=2) as one, Player.open(url, "b", "UCB1", n_arms=2) as two:
        assert one.store is two.store
        one.close()
        assert two.update(two.decide(), 1.0)
    assert two.store._stopped
    with Player.open(url, "a") as again:
        assert again.store is not two.store


def test_one_player_that_is_damaged_or_gone_holds_up_no_other(tmp_path):
    path = tmp_path / "shop.db"
    ours, theirs = Store(f"sqlite:///{path}"), Store(f"sqlite:///{path}")
    players = [ours.player(name, "UCB1", n_arms=2) for name in ("damaged", "gone", "well")]
    others = [theirs.player(name) for name in ("damaged", "gone", "well")]
    base = sqlite3.connect(path)
    base.execute("INSERT INTO abex_events VALUES (?, 1, 'decision', 0, x'00')", (players[0].id,))
    base.execute("UPDATE abex_players SET head = 1 WHERE id = ?", (players[0].id,))
    base.execute("DELETE FROM abex_players WHERE id = ?", (players[1].id,))
    base.commit()
    base.close()
    assert others[2].update(others[2].decide(), 1.0)
    wait_until(lambda: players[2].seq() == 2)
    with pytest.raises(UserError, match="the journal is damaged at event 1 of 'damaged'"):
        players[0].update(0, 1.0)
    with pytest.raises(UnavailableError, match="is gone from the journal"):
        players[1].update(0, 1.0)
    assert players[2].update(0, 1.0)
    for store in (ours, theirs):
        with suppress(UserError):
            store.close()


@pytest.mark.parametrize(
    "change", ["DELETE FROM abex_events WHERE seq = 3", "UPDATE abex_players SET pruned = 4"]
)
def test_a_journal_whose_events_are_missing_is_named(tmp_path, change):
    path = tmp_path / "shop.db"
    with Player.open(f"sqlite:///{path}", "x", "UCB1", n_arms=2) as player:
        for _ in range(3):
            player.update(player.decide(), 1.0)
    base = sqlite3.connect(path)
    base.execute(change)
    base.commit()
    base.close()
    with pytest.raises(UserError, match=r"are missing|there is no snapshot"):
        Player.open(f"sqlite:///{path}", "x")


def test_stores_that_write_for_the_same_players_at_once_do_not_block_each_other(url):
    """Each append locks the rows of all players that it writes for."""
    stores = [Store(url, deadline=30.0) for _ in range(3)]
    names = [f"player {number}" for number in range(8)]
    for name in names:
        stores[0].player(name, "UCB1", n_arms=2)
    errors, reported = [], 25

    def report(store, names):
        try:
            for _ in range(reported):
                for name in names:
                    store.player(name).decide()
                store.player(names[0]).update(0, 1.0)
        except UserError as error:
            errors.append(error)

    work = [
        (store, order)
        for store, order in zip(stores, (names, names[::-1], names[3:] + names[:3]), strict=True)
    ]
    threads = [threading.Thread(target=report, args=one) for one in work]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert errors == []
    [store.close() for store in stores]
    with Store.open(url) as store:
        assert sum(store.player(name)._state.decisions for name in names) == 3 * reported * len(names)


# -- who is behind --------------------------------------------------------------------------------------


def test_a_process_that_is_behind_when_events_are_deleted_catches_up(url):
    ahead, behind = Store(url), Store(url, freshness=3600.0)
    one, two = ahead.player("x", "UCB1", n_arms=3), behind.player("x", "UCB1", n_arms=3)
    for _ in range(5):
        one.update(one.decide(), 1.0)
    waiting = one.decide()
    one.flush()
    one.compact()  # there is nothing to read any more
    assert two.update(waiting.id, 1.0)
    two.refresh()
    one.refresh()
    assert one.text() == two.text()
    ahead.close()
    behind.close()


def test_a_process_that_slept_takes_the_newest_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.players.store.FAR", 100)
    monkeypatch.setattr("abex.players.store.PAGE", 50)
    url = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    ahead, asleep = Store(url, snapshot_every=10**9), Store(url, freshness=3600.0)
    one, two = ahead.player("x", "UCB1", n_arms=3), asleep.player("x", "UCB1", n_arms=3)
    one.update_many([(one.decide(), 1.0) for _ in range(200)])
    one.snapshot()
    restored, plain = [], two.restore
    monkeypatch.setattr(
        two, "restore", lambda record, snapshot: (restored.append(snapshot[0]), plain(record, snapshot))
    )
    two.refresh()
    assert restored == [400]
    assert one.text() == two.text()
    ahead.close()
    asleep.close()


# -- deadlines ------------------------------------------------------------------------------------------


def reported(player):
    """A decision with its reward, written however long that takes."""
    with suppress(UnavailableError):
        player.update(player.decide(), 1.0)
    wait_until(lambda: not player._follower.own)


def test_behind_a_stopped_writer_nothing_waits_longer_than_its_deadline(tmp_path, monkeypatch):
    path = tmp_path / "shop.db"
    with Store.open(f"sqlite:///{path}", deadline=0.3) as store:
        player = store.player("x", "UCB1", n_arms=3)
        reported(player)
        hold = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], os.O_RDWR), 2); print(1, flush=True);"
        hold += "time.sleep(10_000)"
        with subprocess.Popen([sys.executable, "-c", hold, f"{path}-lock"], stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            other.send_signal(signal.SIGSTOP)
            decision = player.decide()
            with pytest.raises(
                UnavailableError, match=r"within 0.3 seconds.*; what was reported is kept"
            ) as raised:
                player.update(decision, 1.0)
            assert raised.value.kept
            assert all(player.decide().id for _ in range(10))
            other.kill()
        player.flush()
        assert not player.update(decision, 1.0)  # it was kept, and counts once
        assert player._state.tallies.rewarded == 2


LOCKS = {
    "abex": "import fcntl; fcntl.flock(os.open(f'{path}-lock', os.O_RDWR), fcntl.LOCK_EX)",
    "another program": "import sqlite3; base = sqlite3.connect(path); base.execute('BEGIN IMMEDIATE')",
}


@pytest.mark.parametrize("writer", LOCKS)
def test_behind_a_stopped_writer_opening_ends_when_it_says(tmp_path, monkeypatch, writer):
    path = tmp_path / "shop.db"
    with Store.open(f"sqlite:///{path}") as store:
        reported(store.player("x", "UCB1", n_arms=3))
    for module in ("sqlite_journal", "journal"):
        monkeypatch.setattr(f"abex.players.{module}.PATIENCE", 0.3)
    hold = (
        f"import os, sys, time; path = sys.argv[1]; {LOCKS[writer]}; print(1, flush=True); time.sleep(10_000)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, path], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        other.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(
            UnavailableError, match=r"another process has been writing to it for more than 0\.3 seconds"
        ):
            Player.open(f"sqlite:///{path}", "y", "UCB1", n_arms=3)
        assert time.monotonic() - began < 5.0  # each wait of ten or twenty seconds would show
        other.kill()
    Player.open(f"sqlite:///{path}", "y", "UCB1", n_arms=3).close()


def test_a_server_that_fails_over_is_noticed_and_nothing_is_lost(server, monkeypatch):
    """Its connections are silent for ever, a new one is answered."""
    monkeypatch.setattr("abex.players.store.SILENT", 0.5)
    proxy = Proxy(server.port)
    with Store.open(server.url().replace(str(server.port), str(proxy.port)), deadline=0.3) as store:
        player = store.player("failing over", "UCB1", n_arms=3)
        reported(player)
        proxy.fall_silent()
        made = [player.decide() for _ in range(20)]
        with pytest.raises(UnavailableError) as raised:
            player.update(made[0], 1.0)
        assert raised.value.kept
        for decision in made[1:3]:
            with suppress(UnavailableError):  # a new connection may be there by now
                player.update(decision, 1.0)
        player.decide()
        wait_until(lambda: not player._follower.own)
        assert player._state.decisions == 22
        assert player._state.tallies.rewarded == 4
    proxy.close()


def test_a_stopped_server_holds_up_no_decision(server):
    with Store.open(server.url(), deadline=0.3) as store:
        player = store.player("stopped", "UCB1", n_arms=3)
        reported(player)
        with server.stopped():  # whoever waited for it would wait for ever
            for _ in range(200):
                decision = player.decide()
            with pytest.raises(UnavailableError, match=r"has not answered within 0.3 seconds"):
                player.update(decision, 1.0)
        wait_until(lambda: not player._follower.own)
        assert player._state.tallies.rewarded == 2


def test_rewards_beyond_the_limit_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.players.shared_player.MOST_UNSAVED", 3)
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        player = store.player("x", "UCB1", n_arms=3)

        def broken(self, batch):
            raise OSError(5, "the disk is away")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteJournal, "_append", broken)
            kept = []
            for _ in range(5):
                with pytest.raises(UnavailableError) as raised:
                    player.update(0, 1.0)
                kept.append(raised.value.kept)
        assert kept == [True, True, True, False, False]
        player.refresh()
        assert player._state.tallies.observations[0] == 3


# -- what is used up ------------------------------------------------------------------------------------


def test_a_server_without_room_for_a_connection_says_so(server):
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE narrow LOGIN PASSWORD 'narrow' CONNECTION LIMIT 0")
    url = server.url(user="narrow", password="narrow")
    with pytest.raises(UnavailableError, match="has no room for another connection"):
        Player.open(url, "x", "UCB1", n_arms=2)


def test_a_server_whose_disk_is_full_says_so_and_the_reward_is_kept(schema):
    """The error is the server's own, of the class that it gives a full disk."""
    import psycopg

    full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
    full += " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    with Store.open(schema) as store, psycopg.connect(schema, autocommit=True) as server:
        player = store.player("x", "UCB1", n_arms=3)
        server.execute(full)
        server.execute("CREATE TRIGGER of_disk BEFORE INSERT ON abex_events EXECUTE FUNCTION full_disk()")
        with pytest.raises(
            UnavailableError, match=r"cannot write to the journal .*: the disk of the server is full"
        ) as raised:
            player.update(0, 1.0)
        assert raised.value.kept
        server.execute("DROP TRIGGER of_disk ON abex_events")
        player.refresh()
        assert player._state.tallies.observations.tolist() == [1, 0, 0]


FULL = """
import os, sys
from abex.players import Player, UnavailableError

with Player.open("sqlite:///small/shop.db", "x", "UCB1", n_arms=3) as player:
    player.update(player.decide(), 1.0)
    ballast = open("small/ballast", "wb", buffering=0)
    try:
        while ballast.write(bytes(4096)):
            pass
    except OSError:
        pass
    told = 1
    try:
        while True:
            told += player.update_many([(player.decide(), 1.0) for _ in range(50)])
    except UnavailableError as error:
        print(error, error.kept)
    ballast.close()
    os.remove("small/ballast")
    try:
        player.refresh()
    except UnavailableError:  # of an attempt that was under way
        player.refresh()
    print(player._state.tallies.rewarded - told)
"""


def test_a_file_system_that_is_full_is_named_and_nothing_is_lost(tmp_path):
    """One of a megabyte, mounted in a name space of its own, where the machine permits that."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mounts of one's own (a machine that permits `unshare -rm`)")
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=1m none small && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", FULL]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    sentence, kept = done.stdout.splitlines()
    assert "the journal 'sqlite:///small/shop.db': the disk is full" in sentence
    assert sentence.endswith("True")
    assert kept == "50"  # those of the request that was refused


def test_a_process_without_descriptors_says_so(url):
    Player.open(url, "x", "UCB1", n_arms=2).close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    store = Store(url)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for free in (0, 2) if url.startswith("sqlite") else (0,):  # none at all, and none for the second file
            [os.close(taken.pop()) for _ in range(free)]
            with pytest.raises(UnavailableError, match="no file descriptor left"):
                store.player("x")
    finally:
        [os.close(one) for one in taken]
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert store.player("x").update(0, 1.0)
    store.close()


def test_a_unit_keeps_its_decision_until_it_is_rewarded_in_any_process(url):
    with Store.open(url) as store:
        player = store.player("x", "Uniform", n_arms=100)
        first = player.decide(unit="ann")
        assert player.decide(unit="ann") == first  # not written yet
        assert player.decide(unit="bob") != first
        player.flush()
        other = Store(url)
        same = other.player("x")
        assert same.decide(unit="ann") == first
        assert same.decide(unit="ann").probability == 0.01
        assert same.update(first, 1.0)
        player.refresh()
        assert player.decide(unit="ann") != first
        with pytest.raises(UserError, match="unit must be 1 to 200 printable characters"):
            player.decide(unit="")
        other.close()


# -- clocks ---------------------------------------------------------------------------------------------


@each("now", [float("nan"), float("inf"), 1e30, -1.0, "noon", None])
def test_a_clock_that_tells_no_time_is_named(now):
    player = Player("UCB1", n_arms=2, clock=lambda: now)
    with pytest.raises(UserError, match="clock must return the seconds since 1970"):
        player.decide()


@each("now", [float("nan"), float("inf"), 1e30])
def test_a_clock_of_a_shared_player_that_tells_no_time_is_named_and_harms_no_other(tmp_path, now):
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        right = store.player("x", "UCB1", n_arms=2, expire=timedelta(hours=1))
        waiting = right.decide()
        wrong = store.player("x", clock=lambda: now)
        for call in (wrong.decide, lambda: wrong.update(waiting, 1.0), wrong.refresh):
            with pytest.raises(UserError, match="clock must return the seconds since 1970"):
                call()
        right.refresh()
        assert right.update(waiting, 1.0)


def test_a_process_whose_clock_is_days_ahead_expires_nothing(server, monkeypatch):
    options = {"n_arms": 2, "expire": timedelta(hours=1)}
    right = Store(server.url())
    player = right.player("clocks", "UCB1", **options)
    early = player.decide()
    player.flush()
    plain = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: plain() + 3 * 24 * 3600 * 10**9)
    wrong = Store(server.url())
    ahead = wrong.player("clocks", "UCB1", **options)
    late = ahead.decide()
    ahead.refresh()
    assert [one.id for one in ahead.pending()] == [early.id, late.id]
    monkeypatch.undo()
    player.refresh()
    assert player.update(early, 1.0)
    assert player.update(late, 1.0)
    right.close()
    wrong.close()


# -- deploys --------------------------------------------------------------------------------------------


def test_the_arms_that_are_declared_are_compared_with_those_of_now(url):
    with Store.open(url) as store:
        player = store.player("x", "UCB1", arms=ARMS)
        player.add_arm("black")
        store.player("x", "UCB1", arms=[*ARMS, "black"])
        with pytest.raises(
            UserError, match="has the arms 'red', 'green', 'blue', 'black', and 'black' is not declared"
        ):
            store.player("x", "UCB1", arms=ARMS)
        with pytest.raises(UserError, match="""and not 'white': on_new_arms="add" adds what is new"""):
            store.player("x", "UCB1", arms=[*ARMS, "black", "white"])
        kept = store.player("x", "UCB1", arms=["red", "white"], on_new_arms="add", on_missing_arms="keep")
        assert kept.arms == [*ARMS, "black", "white"]
        retired = store.player("x", "UCB1", arms=["red", "white"], on_missing_arms="retire")
        assert retired.arms == ["red", "white"]
        with pytest.raises(UserError, match="it has the arms 'red', 'white', not 3 numbered ones"):
            store.player("x", "UCB1", n_arms=3)
        with pytest.raises(UserError, match="unknown on_new_arms 'ad'"):
            store.player("x", "UCB1", arms=ARMS, on_new_arms="ad")


def test_numbered_arms_are_declared_by_how_many_there_were(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/shop.db") as store:
        player = store.player("x", "UCB1", n_arms=3)
        player.remove_arm(1)
        assert store.player("x", "UCB1", n_arms=3).arms == [0, 2]
        assert store.player("x", "UCB1", n_arms=5, on_new_arms="add").arms == [0, 2, 3, 4]
        assert store.player("x", "UCB1", n_arms=4, on_missing_arms="retire").arms == [0, 2, 3]
        player.refresh()
        with pytest.raises(UserError, match="there is an arm 4 already, or there was one"):
            player.add_arm(4)


@pytest.mark.parametrize("arms", [{"arms": [*ARMS, "black"]}, {"n_arms": 4}])
def test_processes_that_deploy_at_once_add_an_arm_once(url, arms):
    with Store.open(url) as store:
        store.player("x", "UCB1", **({"arms": ARMS} if "arms" in arms else {"n_arms": 3}))
    deploy = "import json, sys; from abex.players import Store; sys.stdin.readline()\n"
    deploy += "with Store.open(sys.argv[1]) as store:\n"
    deploy += "    store.player('x', 'UCB1', **json.loads(sys.argv[2]), on_new_arms='add')\n"
    command = [sys.executable, "-c", deploy, url, json.dumps(arms)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        process.stdin.write(b"now\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    with Store.open(url) as store:
        assert store.player("x").n_arms == 4


def test_a_player_that_is_deleted_is_gone_and_its_name_may_come_again(url):
    with Store.open(url) as store:
        old = store.player("banner", "UCB1", n_arms=2)
        decision = old.decide()
        old.update(decision, 1.0)
        record = store.do(lambda journal: journal.player("banner"))
        end = Change("ann", "player deleted", "banner")
        assert not store.do(
            lambda journal: journal.delete(end, record.id, record.head + 1)
        )  # it has had others
        assert store.do(lambda journal: journal.delete(end, record.id, record.head))
        assert store.names() == []
        with pytest.raises(UnavailableError, match="gone"):
            old.update(old.decide(), 1.0)
        assert old.is_gone
        with Player.open(url, "banner", "Thompson", arms=["a", "b"]) as new:
            new.update(new.decide(), 1.0)
            assert store.do(lambda journal: journal.player("banner")).id != record.id
            old.refresh()  # it follows the player of its name
            assert (old.is_gone, old.arms, old.text()) == (False, ["a", "b"], new.text())


def test_an_archived_player_is_gone_until_it_is_brought_back(url):
    with Store.open(url) as store:
        player, other = (store.player(name, "UCB1", n_arms=2) for name in ("banner", "other"))
        waiting = player.decide()
        player.flush()
        record = store.do(lambda journal: journal.player("banner"))
        rest = Change("ann", "player archived", "banner")
        assert not store.do(
            lambda journal: journal.archive(rest, record.id, record.head + 1)
        )  # it has had others
        assert store.do(lambda journal: journal.archive(rest, record.id, record.head))
        assert store.names() == ["other"]
        listed = [
            store.do(lambda journal, archived=archived: journal.players(9, archived))
            for archived in (False, True)
        ]
        assert [[name for name, _ in some] for some in listed] == [["other"], ["banner"]]
        with pytest.raises(UnavailableError, match="gone"):
            player.update(waiting, 1.0)
        assert other.update(other.decide(), 1.0)  # others of the same commit go on
        with pytest.raises(UserError, match="is archived"):
            Player.open(url, "banner")
        assert not store.do(lambda journal: journal.add_player(rest, "{}"))  # its name is taken
        store.do(lambda journal: journal.restore(rest, record.id))
        player.refresh()
        assert player.update(waiting, 1.0)
        assert store.names() == ["banner", "other"]


def test_the_latest_decisions_of_a_log_are_the_last_of_all(url, monkeypatch):
    monkeypatch.setattr("abex.players.shared_player.LEAST_READ", 10)
    monkeypatch.setattr("abex.players.shared_player.READ_AT_ONCE", 7)
    with Store.open(url) as store:
        player = store.player("x", "UCB1", arms=["a", "b"])
        for _ in range(40):
            player.update(player.decide(), 1.0)
        whole, latest = player.log(), player.log(last=5)
        assert whole["decision"].tolist()[-5:] == latest["decision"].tolist()
        assert whole["reward"].tolist()[-5:] == latest["reward"].tolist() == [1.0] * 5
        player.add_arm("c")
        player.compact()
        for _ in range(3):
            player.update(player.decide(), 0.0)
        assert set(player.log()["arm"]) <= {"a", "b", "c"}  # of what is kept
