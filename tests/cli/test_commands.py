"""The command line: tables, files, help with examples, one sentence and exit code 2 for a mistake."""

import inspect
import re
import shlex

import click
import numpy as np

from abex import Thompson
from abex.cli import COMMANDS, group, main
from abex.environments import known_environments
from abex.lab.sweeps.problems import MissingData
from abex.policies import known_policies
from tests.each import each

SMALL = ["--arms", "0.75,0.5x2", "--horizon", "500", "--replications", "5"]


def run(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_simulate_prints_a_table_and_writes_figure_and_numbers(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(["simulate", "--policy", "ABE(eta=1)", "--policy", "TS-N", *SMALL], capsys)
    assert (code, err) == (0, "")
    for word in ("ABE(eta=1)", "Thompson", "exploration slots 0", "3 Bernoulli arms", "ns/step"):
        assert word in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"abex-simulate.{end}" for end in ("csv", "npz", "png")
    ]
    lines = (tmp_path / "abex-simulate.csv").read_text().splitlines()
    assert lines[0] == "policy,step,regret,low,high,optimal_pull_rate"
    assert lines[-1].startswith('"Thompson",500,')


def test_a_run_too_short_for_the_clock_has_no_speed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("abex.simulation.replication.time.thread_time_ns", lambda: 0)
    shortest = ["simulate", "--policy", "UCB1", "--horizon", "10", "--replications", "2"]
    code, out, _ = run([*shortest, "--out", str(tmp_path / "x")], capsys)
    assert code == 0
    assert next(line for line in out.splitlines() if "UCB1" in line).split()[-1] == "-"


def test_other_rewards(tmp_path, capsys):
    world = ["--environment", "Beta([0.9, 0.5])", "--horizon", "100", "--out", str(tmp_path / "x")]
    code, out, _ = run(["simulate", "--policy", "Uniform", *world], capsys)
    assert code == 0
    assert "2 Beta arms" in out


def test_a_rare_disaster_shows_in_the_mean_and_not_in_the_median():
    """Of 100 runs one loses 1,000: the mean is 19.9, the median 10."""
    from abex import Curves
    from abex.cli.simulate import summary_rows

    regret = np.full((1, 100, 1), 10.0)
    regret[0, 0] = 1_000.0
    curves = Curves(
        policies=("UCB1",), checkpoints=np.array([50]), regret=regret, optimal_pulls=regret, nanoseconds=np.ones((1, 100)),
        reports=({},), about={},
    )  # fmt: skip
    ((_, mean, _, median, *_),) = summary_rows(curves)
    assert mean == "19.9"
    assert median == "10.0"


@each(
    ("arguments", "message"),
    [
        (["simulat"], "did you mean 'simulate'"),
        (["simulate", "--policy", "Tompson"], "did you mean 'Thompson'"),
        (["simulate", "--arms", "special"], "pass --graph FILE"),
        (["evaluate", "sqlite:///shop.db"], "--player says whose log it is"),
        (["simulate", "--policy", "ELP"], "needs to know the feedback graph"),
        (["simulate", "--policy", "ABE(etta=1)"], "did you mean 'eta'"),
        (["simulate", "--policy", "ABE(eta=__import__('os'))"], "cannot read the policy"),
        (["simulate", "--horizon", "0"], "horizon must be"),
        (["simulate", "--horizon", "1e12"], "horizon must be at most"),
        (["simulate", "--horizon", "abc"], "--horizon must be a whole number"),
        (["simulate", "--arms", "0.5,2"], "must be >= 0 and <= 1"),
        (["simulate", "--arms", "nan"], "cannot read --arms"),
        (["simulate", "--arms", "random:0"], "random"),
        (["simulate", "--arms", ""], "cannot read --arms"),
        (["simulate", "--seed", "-1"], "--seed must be"),
        (["simulate", "--out", "/no/such/folder/x"], "there is no folder"),
        (["simulate", "--polcy", "x"], "--policy"),
        (
            ["simulate", "--policy", "(UCB1)"],
            "cannot read the policy '(UCB1)': write Name(parameter=value, ...)",
        ),
        (
            ["evaluate", "log.csv", "--estimator", "IPW"],
            "known: replay, IPS, SNIPS, direct, doubly robust, graph-IPS",
        ),
        (["simulate", "--out", "."], "no name of a file"),
        (["simulate", "--out", ""], "no name of a file"),
        (["simulate", "--arms", "0.5x" + "9" * 5000], "cannot read --arms"),
        (["boost", "train", "digits", "--out", "."], "no name of a file"),
        (["list", "TSN"], "did you mean 'TS-N'"),
        (["serve", "--limit", "max-opne=5"], "did you mean 'max-open'"),
        (["serve", "--limit", "max-open"], "write one such as max-open=1e6"),
        (["serve", "--limit", "max-open=1e9"], "max_open must be at most 1e+07"),
        (["serve", "--limit", "client-timeout=0"], "client_timeout must be > 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments, message, capsys):
    code, out, err = run(arguments, capsys)
    assert code == 2
    assert message in err
    assert "Traceback" not in err + out


@each("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    code, out, _ = run([command, "--help"], capsys)
    assert code == 0
    assert "Example" in out
    assert f"abex {command}" in out


def test_list_finds_a_policy_by_its_name_in_the_literature(capsys):
    code, out, _ = run(["list", "ts-n"], capsys)
    assert code == 0
    assert out.startswith("Thompson(")
    code, out, _ = run(["list"], capsys)
    for name in (
        "TS-N",
        "UCB-N",
        "KL-UCB-N",
        "BGE-N",
        "EXP3.P",
        "Drifting",
        "facebook-comparison",
        "pendigits",
    ):
        assert name in out


def test_random_arms_are_seeded():
    from abex.cli.simulate import parse_arms

    assert parse_arms("random:5", 1).tolist() == parse_arms("random:5", 1).tolist()
    assert parse_arms("random:5", 1).tolist() != parse_arms("random:5", 2).tolist()


def test_simulate_plays_on_a_graph_from_a_file(tmp_path, capsys):
    edges = tmp_path / "x.edges"
    edges.write_text("10 20\n20 30\n")
    wanted = ["--graph", str(edges), "--arms", "special", "--policy", "UCB-MaxN", "--horizon", "50"]
    code, out, err = run(["simulate", *wanted, "--replications", "2", "--out", str(tmp_path / "y")], capsys)
    assert code == 0, err
    assert "3 Bernoulli arms, 2 edges" in out


def commands(command, path=()):
    """Every command and subcommand, with the words that lead to it."""
    yield path, command
    for name in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        yield from commands(command.get_command(click.Context(command), name), (*path, name))


ALL = dict(commands(group))


@each("path", ALL)
def test_every_help_text_reads_well(path, capsys):
    code, out, _ = run([*path, "--help"], capsys)
    assert code == 0
    assert "\\b" not in out
    assert "\b" not in out  # click's mark for lines that stay as they are
    assert not re.search(r":[a-z]+:`", out)
    listed = out.partition("Commands:")[2]
    assert "..." not in listed.partition("Example")[0], "a line of the list of commands is cut"
    shown = re.findall(r"^    abex .*$", out, re.MULTILINE)
    for line in shown:  # examples are commands that exist, with options that exist
        words = shlex.split(line)[1:]
        command, at = ALL[()], 0
        while (
            isinstance(command, click.Group) and at < len(words) and words[at] in command.list_commands(None)
        ):
            command, at = command.get_command(None, words[at]), at + 1
        options = {option for one in command.params for option in one.opts}
        assert {word for word in words[at:] if word.startswith("--")} <= options, line
    if not isinstance(ALL[path], click.Group) and path[-1] != "list":
        assert shown, "no example"


@each(
    ("arguments", "message"),
    [
        (["simulate", "--rewards", "foo"], "no such option"),
        (["simulate", "--nonsense"], "--nonsense"),
        (["simulate", "extra"], "unexpected extra argument"),
        (["theory", "recommend"], "missing option '--arms'"),
        (["run"], "missing argument"),
        (["run", "x", "--workers", "0"], "--workers must be a whole number >= 1, got 0"),
        (["theory", "--arms", "two"], "--arms must be a whole number, got 'two'"),
        (["experiment", "x.csv", "--arm", "a", "--reward", "r", "--out", "x.txt"], "a figure's name ends in"),
        (["simulate", "--policy", "ELP"], "pass --graph FILE"),
        (["simulate", "--environment", "SpecialArm"], "SpecialArm needs its parameter K; it has: K, "),
        (
            ["simulate", "--environment", "Nosuch(3)"],
            "unknown environment 'Nosuch'; `abex list environments`",
        ),
        (["arena", "--own", "nosuch.py", "--policy", "Mine", "--dry-run"], "nosuch.py"),
    ],
)
def test_a_wrong_option_is_one_sentence(arguments, message, capsys):
    code, out, err = run(arguments, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("abex: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_policy_that_needs_a_graph_is_told_the_option_in_evaluate(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("arm,probability,reward\nred,0.5,1\nblue,0.5,0\n")
    code, _, err = run(["evaluate", str(log), "--policy", "ELP"], capsys)
    assert (code, err) == (2, "abex: ELP needs to know the feedback graph: pass --graph FILE\n")


def test_a_store_without_results_makes_no_report(tmp_path, capsys):
    folder = str(tmp_path / "r")
    assert (
        run(["reproduce", "--quick", "--only", "epinions-varying", "--dry-run", "--results", folder], capsys)[
            0
        ]
        == 0
    )
    code, _, err = run(["report", "--results", folder], capsys)
    assert code == 2
    assert "there are no results in" in err
    code, _, err = run(["results", "--results", folder, "prune", "mine"], capsys)
    assert (code, err) == (2, "abex: unknown experiment 'mine'; known: (the store has none)\n")


def test_reproduce_without_any_data_fails(tmp_path, capsys, monkeypatch):
    def missing():
        raise MissingData("facebook-0 is not here")

    monkeypatch.setattr(
        "abex.lab.experiments.known_experiments", lambda: {"facebook-a": missing, "facebook-b": missing}
    )
    code, _, err = run(["reproduce", "--only", "facebook", "--results", str(tmp_path / "r")], capsys)
    assert code == 2
    assert err.splitlines()[0] == "abex: facebook-a is left out: facebook-0 is not here"
    assert "nothing was run: the data of all 2 experiments are missing" in err.splitlines()[-1]


@each("name", [*known_policies(), "Bernoulli", "SpecialArm", "TS-N"])
def test_list_explains_by_parameters_and_docstring(name, capsys):
    code, out, _ = run(["list", name], capsys)
    assert code == 0
    cls = {**known_environments(), **known_policies(), "TS-N": Thompson}[name]
    assert out.startswith(f"{cls.__name__}(")
    assert inspect.getdoc(cls) in out
    assert "'float'" not in out  # types are no defaults
