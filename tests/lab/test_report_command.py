"""`abex report` as a person uses it: opened in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from abex.cli import main
from tests.waiting import PATIENCE, wait_until

FILE = """
name = "opened"
horizon = 100
seeds = 2
checkpoints = 10
policies = ["KLUCB"]
[problem.environment]
name = "Bernoulli"
means = [0.9, 0.8, 0.7]
"""


@pytest.mark.parametrize("browser", [True, False])
def test_open_starts_the_browser_or_says_that_there_is_none(tmp_path, browser):
    (tmp_path / "opened.toml").write_text(FILE)
    assert main(["run", str(tmp_path / "opened.toml"), "--results", str(tmp_path / "out")]) == 0
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
