"""What a rebuilding is judged by: hashes of what may not change, lines of code, files that a way crosses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import lines, same
from benchmarks.subjects import Absent, exact, players, policies

from abex import Player
from abex.players import Decision
from abex.policies import known_policies

ROOT = Path(__file__).parents[2]


@pytest.fixture
def few(monkeypatch):
    """Two policies, and short streams of events."""
    monkeypatch.setattr(policies, "POLICIES", ("UCB1", "ABE(eta=1.0)"))
    monkeypatch.setattr(players, "PLAYERS", {"UCB1": 60})


def test_every_policy_of_the_library_is_hashed():
    named = {type(policy).__name__ for _, policy in policies.known()}
    assert named == {name for name, cls in known_policies().items() if cls.__module__.startswith("abex.")}
    assert len(list(policies.known())) == len(policies.POLICIES)
    assert [one.name for one in policies.named(policies.SMALL)] == list(policies.SMALL)


@pytest.mark.parametrize("name", ["decisions", "shared-sqlite"])
def test_the_same_twice(name, few):
    first = same.hashed(same.SUBJECTS[name])
    assert first == same.hashed(same.SUBJECTS[name])
    assert len(first) > 1


def test_the_same_in_another_process(few, tmp_path):
    code = (
        "import json; from benchmarks import same; from benchmarks.subjects import players; "
        "players.PLAYERS = {'UCB1': 60}; print(json.dumps(same.hashed(same.SUBJECTS['shared-sqlite'])))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "TMPDIR": str(tmp_path), "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == same.hashed(same.SUBJECTS["shared-sqlite"])


def test_a_decision_that_differs_is_named_with_its_policy(few, monkeypatch, capsys, tmp_path):
    before = tmp_path / "before.json"
    assert same.main(["--only", "decisions", "--out", str(before)]) == 0
    assert same.main(["--only", "decisions", "--against", str(before)]) == 0
    assert "decisions: the same" in capsys.readouterr().out
    decide, made = Player.decide, []

    def flipped(player):
        decision = decide(player)
        made.append(decision)
        if len(made) == 164:  # the last one of the first player
            return Decision(decision.id, next(arm for arm in player.arms if arm != decision.arm))
        return decision

    monkeypatch.setattr(Player, "decide", flipped)
    assert same.main(["--only", "decisions", "--against", str(before)]) == 1
    said = capsys.readouterr().out
    assert "decisions: not the same in 1 of 4 parts\n    differs: UCB1, 4 arms\n" in said


def test_a_policy_that_is_gone_or_new_is_named(few, monkeypatch):
    before = same.hashed(same.SUBJECTS["decisions"])
    monkeypatch.setattr(policies, "POLICIES", ("UCB1", "MOSS", "ABEE(eta=1.0)"))
    found = same.differences(before, same.hashed(same.SUBJECTS["decisions"]))
    assert sorted(found) == [
        "gone: ABE(eta=1.0), 4 arms", "gone: ABE(eta=1.0), 70 arms", "new: MOSS, 4 arms", "new: MOSS, 70 arms"
    ]  # fmt: skip


def test_what_is_not_here_is_said_and_not_compared(monkeypatch, capsys, tmp_path):
    def absent():
        raise Absent("no server")
        yield

    monkeypatch.setitem(same.SUBJECTS, "server", same.Subject(absent, "needs a server"))
    out = tmp_path / "out.json"
    assert same.main(["--only", "server", "--out", str(out)]) == 0
    assert "not here: no server" in capsys.readouterr().out
    assert json.loads(out.read_text()) == {}


def test_numbers_are_compared_to_the_last_bit():
    assert exact([0.1, 0.3]) != exact([0.1, 0.1 + 0.2])
    assert exact(np.array([1, 2])) == "1 2"


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings():
    source = '''"""Module."""

# a comment
class Thing:
    """Doc.

    More.
    """

    text = """two
    lines"""  # a value
    "no docstring, since it is not the first"
'''
    assert lines.code_lines(source) == 4
    rooms = lines.totals(lines.by_room({"a/x.py": 3, "a/b/y.py": 4, "service/z.py": 5, "w.py": 1}))
    assert {name: sum(files.values()) for name, files in rooms.items()} == {
        "a": 7, "service": 5, lines.BESIDE: 1, "the core": 8, "the other rooms": 5, "all": 13
    }  # fmt: skip


def test_ways_hold_the_files_that_run():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ways", "--only", "step", "decision"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    step, decision = done.stdout.split("\ndecision: ")
    assert int(re.match(r"step: (\d+) files", step)[1]) <= 15
    assert re.search(r"policies \d: abe, boltzmann, ", step)
    assert "simulation 2: delay_queue, loop" in step
    assert "player" in decision
    assert "experiments" not in done.stdout
