"""What a person sees while a sweep runs: a bar on a terminal, two lines in a log, JSON lines for machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from abex.cli import main
from tests.waiting import PATIENCE

pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")
termios = pytest.importorskip("termios", reason="pseudo-terminals are a matter of Unix")

FILE = """
name = "bars"
horizon = {horizon}
seeds = 8
checkpoints = 10
policies = ["KLUCB", "Uniform"]
[problem.environment]
name = "Bernoulli"
means = [0.9, 0.8, 0.7]
"""


def seen_on_a_terminal(folder) -> str:
    """What `abex run` writes to its standard error, which is a terminal."""
    (folder / "bars.toml").write_text(FILE.format(horizon=300_000))  # a bar comes after a while
    command = [sys.executable, "-m", "abex", "run", "bars.toml", "--results", "out", "--workers", "1"]
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (40, 120))
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=child, env=environment
    ) as process:
        os.close(child)
        seen = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        assert process.wait(PATIENCE) == 0
    os.close(parent)
    return seen.decode("utf-8", "replace")


def run(folder, capsys, *options: str) -> tuple[str, str]:
    """Standard output and error of `abex run`, none of them a terminal."""
    (folder / "bars.toml").write_text(FILE.format(horizon=2_000))
    assert main(["run", str(folder / "bars.toml"), "--results", str(folder / "out"), *options]) == 0
    return capsys.readouterr()


def test_a_terminal_shows_a_bar_with_rate_and_time_left(tmp_path):
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen_on_a_terminal(tmp_path))
    assert re.search(r"bars-v1: +\d+%.* \d\d:\d\d left, [\d.e+]+ cells/s", plain)
    assert "16 cells, 16 computed now" in plain


def test_a_log_has_two_lines_an_experiment_and_no_control_characters(tmp_path, capsys):
    out, seen = run(tmp_path, capsys)
    first, last = seen.splitlines()
    assert first == "bars-v1: 16 of 16 cells to compute"
    assert "16 computed now" in last
    assert "\x1b" not in out + seen


def test_machines_read_rate_and_time_left(tmp_path, capsys):
    out, seen = run(tmp_path, capsys, "--json")
    events = [json.loads(text) for text in out.splitlines()]
    assert seen == ""
    done = [event for event in events if "computed" in event][-1]  # then come the lines
    assert done["computed"] == 16
    assert done["cells_per_second"] > 0
    assert done["seconds_left"] == 0.0
    assert "computed" not in events[-1]
