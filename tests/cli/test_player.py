"""`abex player`: create, decide, reward, summary, log, compact."""

import json
from pathlib import Path

import pandas as pd
import pytest

from abex.cli import main
from tests.each import each


def run(capsys, *arguments):
    """What a command prints; it must end well."""
    assert main(["player", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    """The sentence with which a command is refused."""
    with pytest.raises(SystemExit) as stop:
        main(["player", *arguments])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("ABEX_STORE", f"sqlite:///{tmp_path}/shop.db?synchronous=normal")
    return tmp_path


def test_a_player_from_the_command_line(store, capsys):
    out = run(
        capsys,
        "create",
        "banner",
        "--policy",
        "Exp3(gamma=0.2)",
        "--arm",
        "red",
        "--arm",
        "12",
        "--rewards",
        "0",
        "5",
    )
    assert out == "player 'banner': Exp3(gamma=0.2) with 2 arms, 0 events so far\n"
    decision = json.loads(run(capsys, "decide", "banner", "--json"))
    assert decision["arm"] in ("red", "12")
    assert decision["probability"] == 0.5
    assert run(capsys, "reward", "banner", decision["id"], "5") == "learned\n"
    assert run(capsys, "reward", "banner", decision["id"], "5").startswith("nothing new")
    other = "red" if decision["arm"] == "12" else "12"
    assert run(capsys, "reward", "banner", other, "2.5", "--also", decision["arm"], "1") == "learned\n"
    assert len(run(capsys, "decide", "banner", "--count", "2").splitlines()) == 2
    rows = {row["arm"]: row for row in json.loads(run(capsys, "summary", "banner", "--json"))}
    assert rows[other]["mean"] == 2.5
    assert rows[decision["arm"]]["mean"] == 3.0
    text = run(capsys, "summary", "banner")
    assert "3 decisions, 1 rewarded, 2 waiting" in text
    assert run(capsys, "summary") == "banner\n"
    log = run(capsys, "log", "banner").splitlines()
    assert len(log) == 4
    assert log[1].startswith(f"{decision['id']},{decision['arm']},0.5,5.0,")
    run(capsys, "log", "banner", "--out", str(store / "log.parquet"))
    assert pd.read_parquet(store / "log.parquet")["decision"][0] == decision["id"]
    assert run(capsys, "compact", "banner", "--keep", "1h").startswith("deleted 0 events")
    assert run(capsys, "compact", "banner").startswith("deleted 6 events; the state is that of event 6")
    assert run(capsys, "log", "banner").count("\n") == 1


def test_numbered_arms_are_typed_as_numbers(store, capsys):
    run(capsys, "create", "x", "--policy", "UCB1", "--arms", "3", "--expire", "2h")
    assert run(capsys, "reward", "x", "2", "1", "--also", "0", "0") == "learned\n"


@each(
    ("arguments", "message"),
    [
        (("decide", "nobody"), "there is no player 'nobody' in"),
        (("create", "x", "--policy", "Nope", "--arms", "2"), "unknown policy 'Nope'"),
        (("create", "x", "--policy", "UCB1"), "a player needs arms: --arm NAME for each, or --arms NUMBER"),
        (
            ("create", "x", "--arms", "3", "--policy", "MOSS"),
            "MOSS needs to know the horizon: pass --horizon",
        ),
        (("create", "x", "--arms", "3", "--policy", "ELP"), "ELP needs to know the feedback graph, which"),
        (
            ("create", "y", "--policy", "UCB1", "--arms", "2", "--expire", "soon"),
            "'--expire': 'soon' is no time such as 30s",
        ),
        (("reward", "there", "red", "7"), "reward must be"),
        (("reward", "there", "blue", "1"), "there is no arm 'blue'"),
        (("reward", "there", "nonsense", "1"), "nor is it the id of a decision"),
        (("create", "z", "--arms", "red,green"), "names one by one, such as --arm red --arm green"),
        (("reward", "there", "red", "1", "--also", "green", "x"), "'--also': 'x' is not a valid float"),
        (("log", "there", "--out", "log.txt"), "must end in .csv or .parquet"),
        (("compact", "there", "--keep", "-1d"), "'--keep': '-1d' is no time such as 30s"),
        (("summary", "there", "--store", "shop.db"), "a store must be an address"),
        (("decide", "there", "--count", "9"), "--count must be at most 2, got 9"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(store, capsys, arguments, message):
    run(capsys, "create", "there", "--policy", "Exp3(gamma=0.1)", "--arm", "red", "--arm", "green")
    assert message in refused(capsys, *arguments)


def test_a_store_that_is_not_there(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/nothing.db"
    assert "there is no such file" in refused(capsys, "summary", "--store", url)
    assert "there is no such file" in refused(capsys, "decide", "x", "--store", url)
    assert list(tmp_path.iterdir()) == []


def test_what_to_do_about_other_arms_is_said_in_the_words_of_the_shell(store, capsys):
    run(capsys, "create", "banner", "--arm", "red", "--arm", "green")
    said = refused(capsys, "create", "banner", "--arm", "red", "--arm", "green", "--arm", "blue")
    assert said.endswith("and not 'blue': --on-new-arms add adds what is new")
    said = refused(capsys, "create", "banner", "--arm", "red")
    assert said.endswith("'green' is not declared: --on-missing-arms keep leaves it, retire removes it")


def test_the_handbook_switches_and_goes_back(store, capsys):
    """The lines of docs/operations.md, in their order."""
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    lines = page.partition("## Switch to a new player")[2].partition("```\n")[2].partition("```")[0]
    commands = [line.partition("#")[0].split() for line in lines.splitlines()]
    assert {tuple(words[:2]) for words in commands} == {("abex", "player")}
    told = [run(capsys, *words[2:]) for words in commands]
    splits = [out for words, out in zip(commands, told, strict=True) if words[2] == "alias"]
    assert splits[-2:] == [splits[2], splits[1]]  # after the rollbacks
    assert splits[1] == "home/banner: 'banner-v1' 90 %, 'banner-v2' 10 %\n"
    assert told[-1].count("alias rolled back") == 2


def test_an_alias_from_the_command_line(store, capsys):
    for name in ("v1", "v2"):
        run(capsys, "create", name, "--arms", "2")
    assert run(capsys, "alias") == ""
    assert run(capsys, "alias", "home", "v1=100") == "home: 'v1' 100 %\n"
    assert run(capsys, "alias", "home", "v1=90", "v2=10") == "home: 'v1' 90 %, 'v2' 10 %\n"
    assert run(capsys, "alias", "home", "--rollback") == "home: 'v1' 100 %\n"
    found = json.loads(run(capsys, "changes", "--json", "--last", "2"))
    assert [one["what"] for one in found] == ["alias rolled back", "alias set"]
    text = run(capsys, "changes")
    assert len(text.splitlines()) >= 7
    assert '{"v1": 90, "v2": 10}' in text
    assert "is an alias, of 'v1' 100 %, and no player" in refused(capsys, "decide", "home")
    assert run(capsys, "alias", "home", "--remove") == ""
    for words, said in (
        (["home", "v1"], "a split is such as banner-v1=90 banner-v2=10, got 'v1'"),
        (["home", "v1=50.5", "v2=49.5"], "got 'v1=50.5 v2=49.5'"),
        (["home", "v1=90"], "a split must sum to 100 per cent"),
        (["home", "v1=100", "--remove"], "give a NAME and one of a split"),
        (["--rollback"], "give a NAME and one of a split"),
        (["home", "--rollback"], "there is no alias 'home'"),
    ):
        assert said in refused(capsys, "alias", *words)
