"""Policies and environments of another package, and of a file of one's own, by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SOURCE = '''
from dataclasses import dataclass
from abex import Bernoulli, Policy, Record, kernel


class State(Record):
    chosen: int


@dataclass(frozen=True)
class Stubborn(Policy):
    """Always the same arm."""

    arm: int = 0

    def start(self, setting):
        return State(chosen=self.arm)

    @staticmethod
    @kernel
    def select(state, t, rng):
        return state.chosen

    @staticmethod
    @kernel
    def update(state, t, arm, seen, reward, rng):
        pass


@dataclass(frozen=True)
class UCB1(Policy):
    """Wants the name of another one."""

    start = Stubborn.start
    select = staticmethod(Stubborn.select)
    update = staticmethod(Stubborn.update)


@dataclass(frozen=True)
class Coins(Bernoulli):
    """Bernoulli under another name."""
'''
ENTRY_POINTS = """
[abex.policies]
Stubborn = someones_policies:Stubborn
Mulish = someones_policies:Stubborn
UCB1 = someones_policies:UCB1
Broken = someones_policies:NotThere
Wrong = someones_policies:Coins

[abex.environments]
Coins = someones_policies:Coins
"""
EXPERIMENT = """
name = "theirs"
horizon = 50
seeds = 2
policies = ["Stubborn(arm=1)"]
[problem.environment]
name = "Coins"
means = [0.9, 0.4]
"""


@pytest.fixture
def package(tmp_path):
    """A folder in which a package is installed."""
    about = tmp_path / "site" / "someones_policies-1.5.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-policies\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "someones_policies.py").write_text(SOURCE)
    return tmp_path


def run(folder, *command, fails=False):
    paths = [str(folder / "site"), str(ROOT), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout + done.stderr


def test_the_command_line_finds_policies_and_environments_of_other_packages(package):
    said = run(
        package, "-m", "abex", "simulate", "--policy", "Mulish(arm=1)", "--policy", "Discounted(UCB1, gamma=0.9)",
        "--environment", "Coins([0.9, 0.4])", "--horizon", "100", "--replications", "2",
    )  # fmt: skip
    assert "Stubborn(arm=1)" in said
    assert "50.0" in said  # 100 steps on the arm that pays half a coin less
    assert "2 Coins arms" in said
    listed = run(package, "-m", "abex", "list")
    assert "Always the same arm." in listed
    assert "Bernoulli under another name." in listed
    assert "the package someones-policies 1.5 offers Broken, which cannot be loaded" in listed
    assert "offers Wrong, which is no Policy" in listed
    assert "Wants the name" not in listed  # ours is ours


def test_nothing_of_it_is_imported_before_it_is_named(package):
    code = (
        "import sys; from abex.policies import parse_policy\n"
        "assert repr(parse_policy('UCB1')) == 'UCB1(scale=2.0)'\n"
        "assert 'someones_policies' not in sys.modules\n"
        "parse_policy('Stubborn'); assert 'someones_policies' in sys.modules\n"
        "assert repr(parse_policy('UCB1')) == 'UCB1(scale=2.0)'\n"
    )
    run(package, "-c", code)


def test_saved_players_find_it(package):
    run(package, "-c", "from abex import Player; Player('Stubborn(arm=1)', 3).save('p.json')")
    assert run(package, "-c", "from abex import Player; print(Player.load('p.json').select())").strip() == "1"
    (package / "site" / "someones_policies-1.5.dist-info" / "entry_points.txt").unlink()
    said = run(package, "-c", "from abex import Player; Player.load('p.json')", fails=True)
    assert "import the module someones_policies that defines it first" in said


def test_experiments_find_it_and_another_version_is_another_result(package):
    (package / "theirs.toml").write_text(EXPERIMENT)
    command = ("-m", "abex", "run", "theirs.toml", "--results", "out", "--workers", "1", "--json")
    assert '"computed": 2' in run(package, *command)
    assert '"computed": 0' in run(package, *command)
    old = package / "site" / "someones_policies-1.5.dist-info"
    old.rename(old.with_name("someones_policies-1.6.dist-info"))
    about = package / "site" / "someones_policies-1.6.dist-info" / "METADATA"
    about.write_text(about.read_text().replace("1.5", "1.6"))
    assert '"computed": 2' in run(package, *command)


def test_a_file_of_ones_own_on_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE.replace("Stubborn", "Mine"))
    said = run(
        tmp_path, "-m", "abex", "simulate", "--own", "mine.py", "--policy", "Mine(arm=1)", "--environment", "Coins([0.9, 0.4])",
        "--horizon", "100", "--replications", "2",
    )  # fmt: skip
    assert "Mine(arm=1)" in said
    wrong = run(tmp_path, "-m", "abex", "simulate", "--own", "nowhere.py", fails=True)
    assert "cannot read the policies 'nowhere.py': No such file or directory" in wrong
    (tmp_path / "bad.py").write_text("x = (")
    wrong = run(tmp_path, "-m", "abex", "simulate", "--own", "bad.py", fails=True)
    assert "abex: cannot load the policies of 'bad.py': SyntaxError" in wrong
