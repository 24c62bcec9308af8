"""Rehearsals of what the handbook of operations says: a copy is made while players work, and what it holds goes on."""

import sqlite3
import subprocess
import threading

from abex import Player
from tests.postgresql import binaries


def play(player, rounds):
    """Decide and be rewarded; the ids of what was acknowledged."""
    done = []
    for turn in range(rounds):
        decision = player.decide()
        assert player.update(decision.id, reward=turn % 3 == 0)
        done.append(decision.id)
    return done


def goes_on(url, acknowledged, waiting):
    """The player of a copy knows what was acknowledged before it was made, and takes the reward of what waited."""
    with Player.open(url, "banner") as restored:
        known = set(restored.log()["decision"])
        assert set(acknowledged) <= known
        assert not restored.update(acknowledged[0], reward=1.0)  # it has had its reward
        assert restored.update(waiting, reward=1.0)
        play(restored, 5)


def while_another_plays(url, copy):
    """Make a copy in the midst of another thread's decisions; what was acknowledged before, and a decision that waits."""
    with Player.open(url, "banner", arms=["red", "green"], seed=1) as player:
        acknowledged = play(player, 60)
        waiting = player.decide().id
        player.flush()
        goes = threading.Event()
        busy = threading.Thread(target=lambda: [play(player, 1) for _ in iter(goes.is_set, True)])
        busy.start()
        try:
            copy()
        finally:
            goes.set()
            busy.join()
    return acknowledged, waiting


def test_a_file_is_copied_by_vacuum_into_while_it_is_written(tmp_path):
    source, target = tmp_path / "shop.db", tmp_path / "copy.db"

    def copy():
        with sqlite3.connect(source) as base:
            base.execute("VACUUM INTO ?", (str(target),))
        base.close()

    acknowledged, waiting = while_another_plays(f"sqlite:///{source}", copy)
    goes_on(f"sqlite:///{target}", acknowledged, waiting)


def test_a_database_is_dumped_and_restored_while_it_is_written(server, tmp_path):
    import psycopg

    dump = tmp_path / "shop.dump"

    def run(program, *words):
        subprocess.run([binaries() / program, *words], check=True, capture_output=True)

    def copy():
        run("pg_dump", "--format=custom", "--file", str(dump), "--dbname", server.url("backup_source"))

    with psycopg.connect(server.url(), autocommit=True) as connection:
        for name in "backup_source", "backup_restored":
            connection.execute(f"CREATE DATABASE {name}")
    acknowledged, waiting = while_another_plays(server.url("backup_source"), copy)
    run("pg_restore", "--no-owner", "--dbname", server.url("backup_restored"), str(dump))
    goes_on(server.url("backup_restored"), acknowledged, waiting)
