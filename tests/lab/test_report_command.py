"""`abex report` as a person uses it: opened in a browser, and watched while a sweep is running in another process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from abex.cli import main
from tests.waiting import PATIENCE, wait_until

FILE = """
name = "watched"
horizon = 400_000
seeds = {seeds}
checkpoints = 10
policies = ["KLUCB"]
[problem.environment]
name = "Bernoulli"
means = [0.9, 0.8, 0.7]
"""


def start(folder: Path, *arguments: str, **more) -> subprocess.Popen:
    """A command in a session of its own that hears Ctrl-C, whatever the shell of the tests has ignored."""
    return subprocess.Popen(
        [sys.executable, "-m", "abex", *arguments, "--results", "out"], cwd=folder, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, **more,
    )  # fmt: skip


def missing(page: Path) -> int:
    """How many cells the page says are missing."""
    found = re.search(r"(\d+) cells are still missing", page.read_text())
    return int(found[1]) if found else 0


def finish(folder: Path) -> None:
    """Make the experiment a small one, all of which is computed."""
    (folder / "watched.toml").write_text(FILE.format(seeds=2))
    assert start(folder, "run", "watched.toml", "--quiet").wait(PATIENCE) == 0


def test_a_watched_page_follows_a_sweep_in_another_process_and_ends_cleanly(tmp_path):
    finish(tmp_path)
    (tmp_path / "watched.toml").write_text(FILE.format(seeds=10_000))
    page = tmp_path / "out" / "report.html"
    sweep = start(tmp_path, "run", "watched.toml", "--workers", "1", "--quiet")
    watch = start(tmp_path, "report", "--watch", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        early = wait_until(lambda: page.exists() and missing(page), watch)
        assert 'http-equiv="refresh"' in page.read_text()  # the page reloads itself
        wait_until(lambda: missing(page) < early, watch)
        assert sweep.poll() is None  # it takes an hour
        sweep.kill()
        sweep.wait()
        finish(tmp_path)
        wait_until(lambda: missing(page) == 0, watch)
        watch.send_signal(signal.SIGINT)
        out, error = watch.communicate(timeout=PATIENCE)
        assert watch.returncode == 0
        assert "report.html" in out
        assert error == ""
        assert 'http-equiv="refresh"' not in page.read_text()  # what stays behind rests
    finally:
        for process in (sweep, watch):
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("browser", [True, False])
def test_open_starts_the_browser_or_says_that_there_is_none(tmp_path, browser):
    (tmp_path / "watched.toml").write_text(FILE.format(seeds=2).replace("400_000", "100"))
    assert main(["run", str(tmp_path / "watched.toml"), "--results", str(tmp_path / "out"), "--quiet"]) == 0
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n' if browser else "#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    python = Path(sys.executable).parent  # nothing else can be found: no other browser
    environment = {"PATH": str(python), "BROWSER": str(script), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "abex", "report", "--open", "--results", "out"], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    if browser:
        opened = wait_until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text())
        assert opened.strip() == (tmp_path / "out" / "report.html").as_uri()
    else:
        assert "no browser could be started" in done.stderr
