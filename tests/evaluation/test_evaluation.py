"""Evaluation on logs: estimators over thousands of logs whose truth is known, files, refusals, the Open Bandit sample."""

import gzip
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pytest

from abex import Graph, Player, Uniform, simulate
from abex.cli import main
from abex.evaluation import Log, LogReplay, Side, evaluate, replay
from abex.evaluation.estimators import ESTIMATORS, combine
from abex.evaluation.log_files import dsjson_of
from abex.evaluation.target import learned
from abex.evaluation.uncertainty import at_every_moment, for_one_look, influence
from abex.policies.naming import parse_policy
from abex.support.errors import UserError
from tests.each import each
from tests.needs import DATA, real_data

REAL = DATA / "obd"

LOGGED = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
MEANS = np.array([0.2, 0.5, 0.6, 0.7])
TRUTH = float(TARGET @ MEANS)
ROWS, LOGS = 300, 2_000
RING = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]])  # row: what a pull shows
OBSERVED = LOGGED @ RING


def log_of(seed, rows=ROWS, probabilities=LOGGED, beside=False):
    rng = np.random.default_rng([9, seed])
    arm = rng.choice(4, rows, p=probabilities)
    rewards = (rng.random((rows, 4)) < MEANS).astype(float)
    side = None
    if beside:
        row, seen = np.nonzero(RING[arm] * (np.arange(4) != arm[:, None]))
        start = np.searchsorted(row, np.arange(rows + 1))
        side = Side(start, seen, rewards[row, seen], OBSERVED[seen])
    own = rewards[np.arange(rows), arm]
    return Log(range(4), arm, probabilities[arm], own, observed=OBSERVED[arm] if beside else None, side=side)


@cache
def contributions(name):
    logs = [log_of(seed, beside=True) for seed in range(LOGS)]
    seeds = [(seed,) if name == "replay" else () for seed in range(LOGS)]  # of the rows that replay keeps
    return [ESTIMATORS[name](log, TARGET, *seed) for log, seed in zip(logs, seeds, strict=True)]


@pytest.mark.parametrize("name", ["IPS", "doubly robust", "graph-IPS", "replay", "SNIPS", "direct"])
def test_estimates_are_unbiased_over_two_thousand_logs(name):
    values = np.array([one.value() for one in contributions(name)])
    bias, error = values.mean() - TRUTH, values.std(ddof=1) / math.sqrt(LOGS)
    # ratios are biased by O(1/n); with 300 rows that is below a standard error of the mean over the logs
    assert abs(bias / error) < 4.0, (bias, error)
    assert error < 0.002


def test_an_error_in_the_weights_would_be_seen():
    values = np.array([(one.above[:, 0] * 0.97).mean() for one in contributions("IPS")])
    assert abs((values.mean() - TRUTH) / (values.std(ddof=1) / math.sqrt(LOGS))) > 4.0


def covered(ends):
    return float(np.mean([low <= TRUTH <= high for low, high in ends]))


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_intervals_of_steady_logs_cover_as_often_as_they_say(name):
    """Over 1,000 logs: within three standard errors of 95 %, and for sure."""
    some = contributions(name)[:1_000]
    ends = [for_one_look(one, (0.0, 1.0), 0.95) for one in some]
    assert abs(covered(ends) - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 1_000)
    sure = [at_every_moment(one, (0.0, 1.0), 0.95) for one in some[:200]]
    assert covered(sure) == 1.0
    assert np.diff(sure).mean() > 1.3 * np.diff(ends).mean()


def test_side_observations_make_the_estimate_sharper():
    variances = {name: np.var([one.value() for one in contributions(name)]) for name in ("IPS", "graph-IPS")}
    assert variances["graph-IPS"] < 0.6 * variances["IPS"]  # an F test at 2,000 logs would tell 0.9


def test_doubly_robust_compares_a_row_with_the_means_of_rows_before():
    log, counts, sums, total = log_of(1, rows=20), np.zeros(4), np.zeros(4), 0.0
    for arm, probability, reward in zip(log.arm, log.probability, log.reward, strict=True):
        overall = sums.sum() / max(counts.sum(), 1.0)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        total += TARGET @ means + TARGET[arm] / probability * (reward - means[arm])
        counts[arm] += 1
        sums[arm] += reward
    assert evaluate(log, TARGET)["doubly robust"].raw == pytest.approx(total / 20)


def test_graph_ips_values_an_arm_that_was_only_seen_beside_others():
    rewards = np.arange(200) % 4 / 4
    side = Side(np.arange(201), np.ones(200, int), rewards, np.ones(200))
    log = Log(["pulled", "seen"], np.zeros(200, int), np.ones(200), np.zeros(200), side=side)
    found = evaluate(log, {"seen": 1.0})
    assert (found["graph-IPS"].value, found["graph-IPS"].reason) == (rewards.mean(), "")
    assert "never tries arm 'seen'" in found["IPS"].reason


def test_graph_ips_without_side_observations_is_ips():
    log = log_of(1)
    one, two = (evaluate(log, TARGET, estimators=[name]).verdicts[0] for name in ("IPS", "graph-IPS"))
    assert one.value == two.value
    assert one.effective == two.effective


def test_logs_of_a_policy_that_learns_are_valued_without_bias():
    """Inverse propensity is unbiased for probabilities that depend on the past; the direct method is not, as it shows."""
    ips_values, direct_values = [], []
    for seed in range(250):
        player = Player("EpsilonGreedy(epsilon=0.3)", 3, seed=seed)
        rng = np.random.default_rng([3, seed])
        rows = []
        for _ in range(40):
            chosen = player.probabilities()
            decision = player.decide()
            reward = float(rng.random() < 0.5)
            player.update(decision, reward)
            rows.append((decision.arm, chosen[decision.arm], reward))
        arm, probability, reward = zip(*rows, strict=True)
        log = Log(range(3), arm, probability, reward)
        ips_values.append(ESTIMATORS["IPS"](log, np.full(3, 1 / 3)).value())
        direct_values.append(ESTIMATORS["direct"](log, np.full(3, 1 / 3)).value())
    z = [(np.mean(v) - 0.5) / (np.std(v, ddof=1) / math.sqrt(250)) for v in (ips_values, direct_values)]
    assert abs(z[0]) < 4.0
    assert z[1] < -4.0


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_an_arm_never_tried_is_named():
    log = Log(["red", "green", "blue"], [0, 1] * 200, [0.5] * 400, [1.0, 0.0] * 200)
    found = evaluate(log, {"red": 0.5, "blue": 0.5})
    assert not found.confident
    for verdict in found.verdicts:
        assert "never tries arm 'blue'" in verdict.reason
        assert "50.00%" in verdict.reason
        assert math.isnan(verdict.value)
    assert evaluate(log, {"red": 1.0})["IPS"].value == pytest.approx(1.0)
    assert "cannot tell" in str(found)
    early = Log(["red", "green", "blue"], [2] * 10 + [0, 1] * 195, [0.5] * 400, [1.0, 0.0] * 200)
    told = evaluate(early, "Thompson", learn=0.5)
    assert "never tries arm 'blue' after the rows that were learned from" in told["IPS"].reason


def test_too_few_effective_rows_are_said():
    rng = np.random.default_rng(2)
    arm = (rng.random(2_000) < 0.01).astype(int)
    log = Log(["a", "b"], arm, np.where(arm, 0.01, 0.99), rng.random(2_000) < 0.5)
    assert arm.sum() < 30
    found = evaluate(log, {"b": 1.0})
    assert not found.confident
    assert "fewer than 30" in found["SNIPS"].reason
    assert found["SNIPS"].effective == pytest.approx(arm.sum())
    assert not math.isnan(found["SNIPS"].raw)
    assert evaluate(log, {"a": 1.0}).confident


def test_probabilities_that_are_wrong_or_0_at_times_are_noticed():
    log = log_of(2, rows=2_000)
    wrong = Log(log.arms, log.arm, np.full(2_000, 0.25), log.reward)
    assert "the weights average" in evaluate(wrong, TARGET)["IPS"].reason
    assert not evaluate(log, TARGET)["IPS"].reason
    rng = np.random.default_rng(1)
    arm = np.where(np.arange(2_000) % 2, rng.integers(0, 2, 2_000), 0)  # every other decision has no choice
    sometimes = Log(["a", "b"], arm, np.where(np.arange(2_000) % 2, 0.5, 1.0), rng.random(2_000))
    assert all("average 0.7" in verdict.reason for verdict in evaluate(sometimes, "Uniform").verdicts)


def test_a_value_that_rests_on_two_clicks_is_none():
    reward = np.zeros(500)
    reward[[3, 99]] = 1.0
    log = Log(["a", "b"], np.arange(500) % 2, np.full(500, 0.5), reward)
    assert "rare reward are worth 2.0" in evaluate(log, "Uniform")["IPS"].reason
    nothing = evaluate(Log(["a", "b"], np.arange(500) % 2, np.full(500, 0.5), np.zeros(500)), "Uniform")[
        "IPS"
    ]
    assert nothing.value == 0.0
    assert 0.01 < nothing.interval[1] < 0.1


@each(
    ("policy", "message"),
    [
        ({"purple": 1.0}, "no arm 'purple'"),
        ([0.5, 0.6, 0.0, 0.0], "sum to 1"),
        ([0.5, 0.5], "4 probabilities"),
        ([np.nan] * 4, "sum to 1"),
        ("Thomson", "unknown policy"),
        (3.5, "shape"),
        (object(), "must be its text"),
    ],
)
def test_bad_targets_are_refused(policy, message):
    with pytest.raises(UserError, match=message):
        evaluate(log_of(0), policy)


@each(
    ("columns", "message"),
    [
        ({"probability": [0.0, 0.5]}, "above 0"),
        ({"probability": [1.5, 0.5]}, "at most 1"),
        ({"probability": [np.nan, 0.5]}, "row 0"),
        ({"reward": [1.0, np.inf]}, "finite"),
        ({"reward": [1.0]}, "1 entries"),
        ({"arm": [0, 2]}, "position among the 2 arms"),
        ({"arm": ["x", "y"]}, "no name of an arm"),
        ({"arms": ["a", "a"]}, "different names"),
        ({"side": Side(np.array([0, 1, 1]), np.array([0]), np.array([1.0]), np.array([0.5]))}, "twice"),
        ({"side": Side(np.array([0, 1]), np.array([1]), np.array([1.0]), np.array([0.5]))}, "side.start"),
        (
            {"side": Side(np.array([0, 1, 1]), np.array([7]), np.array([1.0]), np.array([0.5]))},
            "one of the 2",
        ),
    ],
)
def test_bad_columns_are_refused(columns, message):
    good = {"arms": ["a", "b"], "arm": [0, 1], "probability": [0.5, 0.5], "reward": [1.0, 0.0]}
    with pytest.raises(UserError, match=message):
        Log(**{**good, **columns})


@each("ask", [lambda log: evaluate(log, "Uniform"), lambda log: replay(log, "Uniform"), LogReplay])
def test_a_table_that_is_no_log_yet_is_told_how_to_become_one(ask):
    with pytest.raises(UserError, match=r"got DataFrame: see Log\.read, Log\.from_frame"):
        ask(pandas.DataFrame({"arm": [0], "probability": [0.5], "reward": [1.0]}))


def test_rewards_beyond_the_declared_range_are_refused():
    log = Log(["a", "b"], [0, 1] * 50, [0.5] * 100, [5.0, 1.0] * 50)
    with pytest.raises(UserError, match="declare their range"):
        evaluate(log, "Uniform")
    assert evaluate(log, "Uniform", rewards=(0, 5))["IPS"].value == pytest.approx(3.0)
    with pytest.raises(UserError, match="low < high"):
        evaluate(log, "Uniform", rewards=(5, 0))


# -- policies that learn -------------------------------------------------------------------------------------------------


def test_a_policy_learns_from_the_first_part_and_is_valued_on_the_rest():
    log = log_of(5, rows=3_000)
    found = evaluate(log, "EpsilonGreedy(epsilon=0.2)")
    assert (found.rows, found.learned) == (1_500, 1_500)
    assert found.probabilities == pytest.approx([0.05, 0.05, 0.05, 0.85])
    assert found["SNIPS"].interval[0] < 0.05 * (0.2 + 0.5 + 0.6) + 0.85 * 0.7 < found["SNIPS"].interval[1]
    ring = Graph.from_edges([(k, (k + 1) % 4) for k in range(4)])
    beside = evaluate(log_of(5, rows=400, beside=True), "UCBMaxN", graph=ring, estimators=["graph-IPS"])
    assert beside.probabilities.max() == 1.0
    with pytest.raises(UserError, match="leaves none"):
        evaluate(log, "Thompson", learn=1.0)


@pytest.mark.parametrize(
    ("policy", "least"),
    [
        ("ABE(eta=1.0)", 0.85),
        ("Boltzmann(eta=1.0)", 0.85),
        ("DecayingEpsilonGreedy(decay=1.0)", 0.85),
        ("Windowed(UCB1(scale=0.5), width=200)", 0.85),
        ("Discounted(Boltzmann(eta=2.0), gamma=0.99)", 0.75),
        ("Restarting(KLUCB, exploration=0.1)", 0.85),
    ],
)
def test_a_policy_that_looks_at_the_clock_is_valued_as_it_stands_after_the_rows(policy, least):
    rng, means = np.random.default_rng(1), np.array([0.9, 0.2, 0.2])
    arms = rng.integers(3, size=1600)
    rewards = (rng.random(1600) < means[arms]).astype(float)
    log = Log(range(3), arms, np.full(1600, 1 / 3), rewards)
    assert learned(parse_policy(policy), log, (0.0, 1.0))._steps == 1600
    found = evaluate(log, policy, learn=0.5, estimators=["direct"])["direct"]
    assert found.value > least


def test_replay_lives_through_the_same_steps_as_the_world():
    """Mean reward over the first 25 steps of a policy: by replay of logs of another one, and by simulation."""
    n, lived, uneven = 150, [], np.array([0.5, 0.3, 0.2])
    for seed in range(n):
        rng = np.random.default_rng([4, seed])
        arm = rng.choice(3, 400, p=uneven)
        log = Log(range(3), arm, uneven[arm], rng.random(400) < np.array([0.2, 0.5, 0.8])[arm])
        lived.append(replay(log, "EpsilonGreedy(epsilon=0.2)", seed=seed).rewards[:25].mean())
    world = LogReplay(
        Log(range(3), [0] * 5 + [1] * 2 + [2] * 5, [0.5] * 12, [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1])
    )
    assert world.true_means == pytest.approx([0.2, 0.5, 0.8])
    curves = simulate(
        "EpsilonGreedy(epsilon=0.2)", world, horizon=25, replications=2_000, seed=1, checkpoints=[25]
    )
    played = 0.8 - curves.regret[0, :, -1] / 25
    error = math.hypot(np.std(lived, ddof=1) / math.sqrt(n), played.std(ddof=1) / math.sqrt(2_000))
    assert abs(np.mean(lived) - played.mean()) < 4 * error


def test_a_log_too_short_for_replay_says_so():
    found = replay(log_of(1, rows=40), "Thompson")
    assert "fewer than 30" in found.reason
    assert math.isnan(found.value)


def test_a_log_is_an_environment_that_pays_what_was_logged():
    log = Log(["a", "b"], [0, 0, 0, 1, 1], [0.5] * 5, [0.0, 1.0, 0.25, 1.0, 0.5])
    world = LogReplay(log).open(np.uint64(5), 10)
    with np.errstate(over="ignore"):
        drawn = [{float(LogReplay.draw(world, t, arm)) for t in range(1, 200)} for arm in (0, 1)]
    assert drawn == [{0.0, 0.25, 1.0}, {0.5, 1.0}]
    with pytest.raises(UserError, match="never tried"):
        LogReplay(Log(["a", "b"], [0, 0], [0.5] * 2, [0.0, 1.0]))


# -- files -----------------------------------------------------------------------------------------------------------------


def columns_of(log):
    """The columns in which a player writes a log."""
    names = np.array([str(label) for label in log.arms], dtype=object)
    columns = {
        "decision": np.arange(len(log)),
        "arm": names[log.arm],
        "probability": log.probability,
        "reward": log.reward,
    }
    if log.side is not None:
        known, paid = [], []
        for row in range(len(log)):
            seen = slice(log.side.start[row], log.side.start[row + 1])
            beside = names[log.side.arm[seen]].tolist()
            chances = dict(zip(beside, log.side.probability[seen].tolist(), strict=True))
            known.append(json.dumps({names[log.arm[row]]: log.observed[row]} | chances))
            paid.append(json.dumps(dict(zip(beside, log.side.reward[seen].tolist(), strict=True))))
        columns |= {"observed": known, "also": paid}
    return pandas.DataFrame(columns)


@each("name", ["log.csv", "log.csv.gz", "log.parquet", "log.dsjson"])
def test_a_log_survives_a_file(name, tmp_path):
    log = log_of(3, rows=50, beside=not name.endswith("dsjson"))
    log = Log(
        ["red", "blue", "green", "grey"],
        log.arm,
        log.probability,
        log.reward,
        observed=log.observed,
        side=log.side,
    )
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
        columns_of(log).to_parquet(tmp_path / name)
    elif name.endswith("dsjson"):
        (tmp_path / name).write_bytes(dsjson_of(log))
    else:
        columns_of(log).to_csv(tmp_path / name, index=False)
    back = Log.read(tmp_path / name, arms=log.arms)
    assert back.arms == log.arms
    for column in ("arm", "probability", "reward"):
        assert np.array_equal(getattr(back, column), getattr(log, column))
    if log.side is not None:
        assert all(np.array_equal(one, two) for one, two in zip(back.side, log.side, strict=True))
        assert np.array_equal(back.observed, log.observed)
        assert evaluate(back, "Uniform")["graph-IPS"] == evaluate(log, "Uniform")["graph-IPS"]


def test_dsjson_of_vowpal_wabbit_is_understood(tmp_path):
    event = {
        "_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "Version": "1",
        "EventId": "e1", "Timestamp": "2018-08-12T00:00:00Z", "a": [2, 1, 3], "c": {"_multi": [{}, {}, {}]},
        "p": [0.8, 0.1, 0.1],
    }  # fmt: skip
    dangling = {"RewardValue": 1.0, "EventId": "e9"}
    (tmp_path / "x.json").write_text(json.dumps(event) + "\n\n" + json.dumps(dangling) + "\n")
    log = Log.read(tmp_path / "x.json")
    assert (log.arms, log.arm.tolist(), log.reward.tolist(), log.probability.tolist()) == (
        (1, 2, 3),
        [1],
        [1.0],
        [0.8],
    )
    assert log.decision.tolist() == ["e1"]


@each(
    ("name", "content", "message"),
    [
        ("a.csv", "arm,reward\n1,1\n", "no column 'probability'"),
        ("a.csv", "arm,probability,reward,click\n1,1,1,1\n", "keep one"),
        (
            "a.csv",
            "arm,probability,reward\n1,1,1\n1,x,1\n",
            r"cannot take 'x', the probability in line 3 of .*a\.csv",
        ),
        ("a.csv", "arm,probability,reward\n1,1,1\n1,0,1\n", r"got 0 in line 3 of .*a\.csv"),
        ("a.csv", "arm,probability,reward\nx,0.5,1\n,0.5,1\n", r"there is no arm in line 3 of .*a\.csv"),
        ("a.csv", 'arm,probability,reward\n\n"x\ny",0.5,1\n \nz,2,1\n', r"got 2 in line 6 of .*a\.csv"),
        ("a.csv", "arm,probability,reward\n,0.5,1\n0,0.5,1\n", "without an arm|arm"),
        (
            "a.csv",
            'arm,probability,reward,also,observed\n1,0.5,1,"[1]","[[9]]"\n',
            "read the side observations in line 2",
        ),
        ("a.csv", "", "read"),
        ("a.dsjson", "[", "line 1"),
        ("a.dsjson", "[" * 100_000, "line 1"),
        (
            "a.dsjson",
            '{"_label_cost": 0, "_label_probability": 1, "_label_Action": 2147483647}',
            "_label_Action",
        ),
        ("a.dsjson", '{"_label_cost": NaN, "_label_probability": 1, "_label_Action": 1}', "read line 1"),
        ("a.dsjson", '{"_label_cost": "x", "_label_probability": 1, "_label_Action": 1}', "Expected `float"),
        ("a.dsjson", '{"_label_cost": 0, "_label_probability": 1}', "no label of numbers"),
        ("a.dsjson", "{}", "no event with a label"),
        ("a.exe", "x", "cannot tell the format"),
    ],
)
def test_files_that_are_no_logs_are_refused_in_a_sentence(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=message):
        Log.read(tmp_path / name)


def test_the_journal_of_a_shared_player_becomes_a_log(tmp_path, capsys):
    pytest.importorskip("psycopg")
    names, rng = ["red", "green", "blue"], np.random.default_rng(0)
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(
        url,
        "banner",
        "Exp3SET(eta=0.6)",
        arms=names,
        graph=Graph.from_edges([(0, 1), (1, 2)]),
        horizon=99,
        seed=1,
    ) as player:
        for step in range(120):
            decision = player.decide()
            if step % 10:
                near = [other for other in names if abs(names.index(other) - names.index(decision.arm)) == 1]
                player.update(decision, float(rng.random() < 0.5), also={other: 1.0 for other in near})
        log = Log.from_player(player)
    assert len(log) == 108
    assert set(log.arms) == set(names)
    assert log.side.reward.min() == 1.0
    assert (log.observed >= log.probability - 1e-12).all()
    place = log.arms.index("green")  # every pull shows the middle of the path
    assert log.observed[log.arm == place] == pytest.approx(1.0)
    assert log.side.probability[log.side.arm == place] == pytest.approx(1.0)
    main(["evaluate", url, "--player", "banner", "--estimator", "graph-IPS"])
    assert "108 decisions on 3 arms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            'a,x,1,"{""a"": 1}","{""b"": 1}"',
            "cannot take 'x', the probability in line 2 of .*log.csv, for a number",
        ),
        ('a,1.5,1,"{""a"": 1}","{""b"": 1}"', "probability must be"),
        ('a,0.5,1,"{""a"": ""x""}","{""b"": 1}"', "cannot read the side observations in line 2"),
        ('a,0.5,1,"{""a"": 1","{""b"": 1}"', "cannot read the side observations in line 2"),
        ('a,0.5,1,"{""a"": 1, ""b"": 1}","{""b"": null}"', "cannot read the side observations in line 2 of"),
    ],
)
def test_a_wrong_cell_of_a_players_log_is_one_sentence(tmp_path, capsys, row, sentence):
    (tmp_path / "log.csv").write_text(f"arm,probability,reward,observed,also\n{row}\nb,0.5,1,,\n")
    with pytest.raises(UserError, match=sentence):
        Log.read(tmp_path / "log.csv")
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(tmp_path / "log.csv")])
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# -- the command, and the Open Bandit sample ---------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns_of(log_of(7, rows=600)).to_csv("log.csv", index=False)
    main(
        ["evaluate", "log.csv", "--policy", "Uniform", "--policy", '{"3": 1.0}', "--replay", "--out", "found"]
    )
    said = capsys.readouterr().out
    assert "doubly robust" in said
    assert "while it learns" in said
    assert Path("found.png").stat().st_size > 5_000
    lines = Path("found.csv").read_text().splitlines()
    assert len(lines) == 1 + 7 + 6
    assert lines[0].startswith("policy,estimator,value,low,high")
    wrongs = (
        ["gone.csv"],
        ["log.csv", "--estimator", "IPZ"],
        ["log.csv", "--rewards", "1"],
        ["log.csv", "--policy", "{"],
        ["log.csv", "--arms", "2"],
    )
    for wrong in wrongs:
        with pytest.raises(SystemExit) as stopped:
            main(["evaluate", *wrong])
        assert stopped.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


@real_data("obd")
def test_uniform_choice_from_the_thompson_logs_of_the_open_bandit_sample():
    arms = range(34)
    found = evaluate(
        Log.read(REAL / "bts-men.csv.gz", arms=arms), Uniform(), estimators=["IPS", "SNIPS", "doubly robust"]
    )
    truth = evaluate(Log.read(REAL / "random-men.csv.gz", arms=arms), Uniform(), estimators=["IPS"])["IPS"]
    assert truth.value == pytest.approx(0.0046)
    assert truth.effective == pytest.approx(10_000)
    assert found["SNIPS"].value == pytest.approx(0.0032, abs=1e-4)
    assert found["SNIPS"].effective == pytest.approx(656, abs=1)
    for verdict in found.verdicts:
        low, high = verdict.interval
        assert low < truth.value < high
        assert max(low, truth.interval[0]) < min(high, truth.interval[1])


@real_data("obd")
def test_the_womens_campaign_cannot_answer():
    with gzip.open(REAL / "bts-women.csv.gz", "rt") as file:
        assert file.readline().startswith(",timestamp,item_id")
    log = Log.read(REAL / "bts-women.csv.gz", arms=range(46))
    found = evaluate(log, "Uniform")
    assert not found.confident
    assert found["IPS"].effective < 3
    assert all("fewer than 30" in verdict.reason for verdict in found.verdicts)
    assert evaluate(Log.read(REAL / "random-women.csv.gz", arms=range(46)), "Uniform").confident


def test_influence_is_the_derivative():
    one = contributions("SNIPS")[0]
    weights = np.ones(ROWS)
    weights[17] += 1e-6
    moved = combine(weights @ one.above, weights @ one.below, one.coefficient)
    assert (moved - one.value()) / 1e-6 * ROWS == pytest.approx(
        influence(one)[17] - one.value(), rel=1e-4, abs=1e-6
    )


def test_the_log_of_a_shared_player_is_read_back(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "EpsilonGreedy(epsilon=0.5)", arms=["red", "green"], seed=1) as player:
        for step in range(60):
            player.update(player.decide(), step % 3 == 0)
        player.decide()  # still without a reward
    main(["player", "log", "banner", "--store", url, "--out", str(tmp_path / "log.csv")])
    log = Log.read(tmp_path / "log.csv")
    assert (log.arm.size, sorted(log.arms), log.observed, log.side) == (60, ["green", "red"], None, None)
    assert log.reward.sum() == 20


def test_a_log_takes_names_of_arms_one_probability_and_frames_with_columns_of_their_own():
    named = Log(["red", "blue"], ["blue", "red", "blue"], 0.5, [1.0, 0.0, 1.0])
    assert named.arm.tolist() == [1, 0, 1]
    assert named.probability.tolist() == [0.5] * 3
    with pytest.raises(UserError, match="'rde' is no name of an arm"):
        Log(["red", "blue"], ["rde"], 0.5, [1.0])
    columns = {
        "variant": ["b", "a", "b"],
        "paid": [1, 0, 1],
        "p": [0.25, 0.75, 0.25],
        "country": ["x", "y", "z"],
    }
    import pandas as pd
    import polars as pl

    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), columns):
        log = Log.from_frame(frame, arm="variant", reward="paid", probability="p")
        assert log.arms == ("a", "b")
        assert log.probability.tolist() == [0.25, 0.75, 0.25]
        assert (
            Log.from_frame(frame, arm="variant", reward="paid", probability=0.5).probability.tolist()
            == [0.5] * 3
        )
    with pytest.raises(UserError, match="no column 'variat' for the arm"):
        Log.from_frame(columns, arm="variat", reward="paid", probability="p")


def test_an_arm_is_no_policy_and_a_wrong_estimator_is_told_the_right_ones(tmp_path, capsys):
    from abex.cli import main

    path = tmp_path / "log.csv"
    columns_of(Log(["red", "blue"], [0, 1, 1], 0.5, [1.0, 0.0, 1.0])).to_csv(path, index=False)
    for arguments, said in (
        (["--policy", "red"], """--policy '{"red": 1.0}' values playing it always"""),
        (["--estimator", "SNIP"], "did you mean 'SNIPS'?); known: replay, IPS"),
    ):
        with pytest.raises(SystemExit):
            main(["evaluate", str(path), *arguments])
        assert said in capsys.readouterr().err
