"""`abex warm`: what it compiles is there for the next process, and nothing is compiled twice."""

import pytest

import abex.kernels.cache
from abex.cli import main
from abex.kernels import cache_folder
from tests.kernels.test_kernels import run


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Compiled code of this test alone."""
    monkeypatch.setenv("ABEX_CACHE", str(tmp_path))
    cache_folder.cache_clear()
    yield tmp_path / "kernels"
    cache_folder.cache_clear()


def told(arguments, capsys):
    try:
        code = main(["warm", *arguments])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def test_what_is_compiled_ahead_is_used_by_the_next_process(tmp_path):
    warm = "from abex.cli import main; main(['warm', '--policy', 'UCB1', '--arms', '3'])"
    first = run(warm, ABEX_CACHE=str(tmp_path))
    assert "UCB1, 3 arms" in first
    assert "there already" not in first
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel")}
    assert files
    simulate = "from abex import *; simulate('UCB1', Bernoulli([.4, .6, .5]), horizon=500, replications=2)"
    run(simulate, ABEX_CACHE=str(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel")} == files
    assert "there already" in run(warm, ABEX_CACHE=str(tmp_path))


def test_a_compiled_player_finds_what_was_compiled_ahead(tmp_path):
    warm = "from abex.cli import main; main(['warm', '--players', '--policy', 'UCB1', '--arms', '40'])"
    assert "player of UCB1, 40 arms" in run(warm, ABEX_CACHE=str(tmp_path))
    files = {path.name for path in tmp_path.rglob("*.kernel")}
    assert files
    play = (
        "from abex import Player; player = Player('UCB1', n_arms=50, compiled=True); "
        "player.update(player.decide(), 1.0); player.summary()"
    )
    run(play, ABEX_CACHE=str(tmp_path))
    assert {path.name for path in tmp_path.rglob("*.kernel")} == files


def test_policies_that_need_a_graph_get_one(empty_cache, capsys):
    code, out, err = told(["--policy", "ELP", "--arms", "3", "--arms", "2"], capsys)
    assert (code, err) == (0, "")
    assert "ELP, 3 arms, graph" in out
    assert "ELP, 2 arms, graph" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "Tompson"], "did you mean 'Thompson'"),
        (["--policy", "UCB1", "--arms", "0"], "--arms must be"),
        (["--policy", "UCB1", "--arms", "many"], "--arms must be a whole number"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, message, empty_cache, capsys):
    code, out, err = told(arguments, capsys)
    assert (code, out) == (2, "")
    assert message in err


def test_a_cache_that_cannot_be_used_is_said_before_anything_is_compiled(monkeypatch, capsys):
    monkeypatch.setattr(abex.kernels, "cache_folder", lambda: None)
    code, _, err = told(["--policy", "UCB1"], capsys)
    assert code == 2
    assert "ABEX_CACHE" in err
