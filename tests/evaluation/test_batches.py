"""Logs of decisions made at once: how they know it, and that their values are right."""

import itertools
import math

import numpy as np
import pytest

from abex import Graph, Player
from abex.cli import main
from abex.evaluation import Log, Side, evaluate, replay
from abex.evaluation.batches import chances_of
from abex.evaluation.estimators import ESTIMATORS, ips
from abex.evaluation.log_files import dsjson_of
from abex.evaluation.target import as_target
from abex.evaluation.uncertainty import at_every_moment
from abex.players.player_settings import PlayerSettings
from abex.players.requests import DecideRequest
from abex.service.timeline import UniformChoice
from abex.support.errors import UserError
from tests.carried_out import carried_out
from tests.each import each

TARGET = np.array([0.2, 0.3, 0.5])
PAYS = np.array([0.25, 0.5, 1.0])


def ordered_batches(p):
    """Every batch of two of three arms in its order, with its probability."""
    for first, second in itertools.permutations(range(3), 2):
        yield (first, second), p[first] * p[second] / (1.0 - p[first])


def inclusion(p):
    found = np.zeros(3)
    for batch, chance in ordered_batches(p):
        found[list(batch)] += chance
    return found


def test_the_chances_of_a_batch_are_those_of_all_its_orders():
    assert chances_of(TARGET, 2) == pytest.approx(inclusion(TARGET), abs=1e-9)
    assert chances_of(TARGET, 3).tolist() == [1.0, 1.0, 1.0]
    assert chances_of(np.full(5, 0.2), 2) == pytest.approx(np.full(5, 0.4))
    assert chances_of(np.array([0.25, 0.25, 0.0, 0.25, 0.25]), 2).tolist() == [0.5, 0.5, 0.0, 0.5, 0.5]
    with pytest.raises(UserError, match="has 1 arms, but the log has batches of 2"):
        chances_of(np.array([0.0, 1.0, 0.0]), 2)


@pytest.mark.parametrize("name", ["IPS", "doubly robust", "graph-IPS"])
def test_values_are_exact_in_expectation_where_the_policy_learns(name):
    """All 36 pairs of batches; what the first paid decides how the second is drawn."""
    truth = sum(chance * PAYS[list(batch)].mean() for batch, chance in ordered_batches(TARGET))
    expected, total = 0.0, 0.0
    start = np.array([0.5, 0.3, 0.2])
    for one, chance in ordered_batches(start):
        learned = start[[2, 0, 1]] if PAYS[list(one)].sum() > 1.3 else start
        for two, then in ordered_batches(learned):
            arm = [*one, *two]
            probability = [*inclusion(start)[list(one)], *inclusion(learned)[list(two)]]
            log = Log(range(3), arm, probability, PAYS[arm], batch=["x", "x", "y", "y"])
            value = ESTIMATORS[name](log, inclusion(TARGET)[None]).value()
            expected, total = expected + chance * then * value, total + chance * then
    assert total == pytest.approx(1.0)
    assert expected == pytest.approx(truth, abs=1e-12)


def exp3_batches(logs, rows, means, seed=5):
    """Logs of EXP3 that draws two different arms at once, side by side."""
    n_arms, rng = means.size, np.random.default_rng(seed)
    gains, each, columns = np.zeros((logs, n_arms)), np.arange(logs), []
    rate = math.sqrt(math.log(n_arms) / (rows * n_arms))
    for _ in range(rows // 2):
        p = np.exp(rate * (gains - gains.max(axis=1, keepdims=True)))
        p = 0.9 * p / p.sum(axis=1, keepdims=True) + 0.1 / n_arms
        odds = p / (1.0 - p)
        inside = p * (1.0 + odds.sum(axis=1, keepdims=True) - odds)
        races = rng.exponential(size=p.shape) / p
        for arm in np.argsort(races, axis=1)[:, :2].T:
            reward = (rng.random(logs) < means[arm]).astype(float)
            columns.append((arm, inside[each, arm], reward))
            gains[each, arm] += reward / inside[each, arm]
    arm, chance, reward = (np.array(column).T for column in zip(*columns, strict=True))
    batch = np.repeat(np.arange(rows // 2), 2)
    return [Log(range(n_arms), arm[one], chance[one], reward[one], batch=batch) for one in range(logs)]


def test_intervals_of_batches_cover():
    """Over 1,000 logs of a policy that learns, for a target far from what it plays."""
    means, target = np.array([0.2, 0.4, 0.5, 0.6]), np.array([0.4, 0.3, 0.2, 0.1])
    chances = chances_of(target, 2)
    truth = float(chances @ means) / 2.0
    logs = exp3_batches(1_000, 300, means)
    for name in ("IPS", "SNIPS", "doubly robust"):
        found = [ESTIMATORS[name](log, chances[None]) for log in logs]
        values = np.array([one.value() for one in found])
        if name != "SNIPS":
            assert abs(values.mean() - truth) < 4.0 * values.std(ddof=1) / math.sqrt(1_000)
    sure = np.array([at_every_moment(one, (0.0, 1.0), 0.95) for one in found[:200]])
    assert ((sure[:, 0] <= truth) & (truth <= sure[:, 1])).mean() >= 0.98


def test_a_batch_is_one_unit_and_not_two():
    """Of 60 batches whose two rows pay alike the interval is as wide as of 60 rows."""
    paid = np.repeat(np.random.default_rng(3).random(60) < 0.5, 2).astype(float)
    arm, batch = np.tile([0, 1], 60), np.repeat(np.arange(60), 2)
    logs = Log(["a", "b"], arm, np.ones(120), paid, batch=batch), Log(["a", "b"], arm[:60], 0.5, paid[::2])
    found = [ips(log, as_target("Uniform", log, 0.5, (0.0, 1.0)).chances) for log in logs]
    assert found[0].effective == found[1].effective == 60
    together_made, alone = (at_every_moment(one, (0.0, 1.0), 0.95) for one in found)
    assert np.diff(together_made) == pytest.approx(np.diff(alone), rel=1e-3)


def test_the_live_page_takes_decisions_made_at_once_for_one():
    """Uniform choice on the page is what the evaluation says of the log with its batches."""
    rng, distributions = np.random.default_rng(8), np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    chances, uniform, rows = (
        [chances_of(one, 2) for one in distributions],
        UniformChoice(PlayerSettings()),
        [],
    )
    for one in range(150):
        arms = rng.choice(3, 2, replace=False, p=distributions[one % 2])
        paid = float(rng.random() < 0.4)  # both alike
        rows += [(int(arm), chances[one % 2][arm], paid, f"b{one}") for arm in arms]
    for _, chance, paid, batch in rows:
        uniform.add(paid, 2 / (3 * chance), batch)
    arm, chance, paid, batch = zip(*rows, strict=True)
    found = evaluate(Log(range(3), arm, chance, paid, batch=np.array(batch)), "Uniform")["SNIPS"]
    assert uniform.earned(300) == pytest.approx((300 * found.value, *(300 * end for end in found.interval)))


def test_rows_decided_by_themselves_are_units_of_their_own_beside_batches():
    """Of 20 batches, each followed by two rows by themselves, the latter weigh as if there were no batches."""
    arm = np.tile([0, 1, 1, 1], 20)
    batch = np.array([name for one in range(20) for name in (f"b{one}", f"b{one}", "", "")])
    log = Log(
        ["a", "b"], arm, np.tile([1.0, 1.0, 0.5, 0.5], 20), np.tile([1.0, 0.0, 1.0, 0.0], 20), batch=batch
    )
    assert log.units.start.size == 60
    assert log.units.sums(log.reward).tolist() == [1.0, 1.0, 0.0] * 20
    # a batch holds both arms whatever the target; by itself it never chooses b
    assert ESTIMATORS["IPS"](log, np.stack([[1.0, 0.0], [1.0, 1.0]])).value() == pytest.approx(20 / 80)


@pytest.mark.parametrize("policy", ["Thompson", "EpsilonGreedy(epsilon=0.5)", "UCB1"])
def test_the_decisions_of_a_player_know_their_batch(policy):
    player, rows = Player(policy, arms=["a", "b", "c"], seed=1), []
    for step in range(80):
        made = player.decide_many(2) if step % 2 else [player.decide()]
        assert all(decision.probability > 0.0 for decision in made)
        assert len({decision.batch for decision in made}) == 1
        rows += [(one.id, one.arm, one.probability, *(one.batch or (None, None))) for one in made]
        player.update_many((one.id, one.arm == "b") for one in made)
    names = ("decision", "arm", "probability", "batch", "batch_size")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["reward"] = [float(arm == "b") for arm in columns["arm"]]
    log = Log.from_frame(columns)
    assert repr(log) == "<Log of 120 decisions made 80 times on 3 arms>"
    assert log.units.sizes.tolist() == [1, 2]
    learned = player.probabilities(2)
    assert learned.sum() == pytest.approx(2.0, abs=1e-6)
    assert player.probabilities(3).tolist() == [1.0] * 3
    if policy.startswith("Epsilon"):
        # a third of the decisions is by itself: (1/3)(1/3) + (2/3)(1/2)(2/3) is what "b" gets of uniform choice
        found = evaluate(log, "Uniform", estimators=["IPS", "direct"])
        assert found["direct"].value == pytest.approx(1.0 / 3.0)
        assert found["IPS"].interval[0] < 1.0 / 3.0 < found["IPS"].interval[1]
        on = evaluate(log, "EpsilonGreedy(epsilon=0.2)", learn=62 / 120)
        assert on.rows + on.learned == 120
        assert on.learned == 63  # 62 would have torn a batch


def played_at_once(url, **options):
    with Player.open(
        url, "banner", "EpsilonGreedy(epsilon=0.5)", arms=["red", "green", "blue"], seed=1, **options
    ) as player:
        for step in range(60):
            made = player.decide_many(2)
            for one in made if step % 3 else made[:1]:
                player.update(one, one.arm == "red")
        return Log.from_player(player)


def test_the_journal_knows_batches_and_what_has_no_reward_counts(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/shop.db"
    log = played_at_once(url)
    assert (len(log), log.units.start.size, log.units.sizes.tolist()) == (100, 60, [2])
    assert "average" not in evaluate(log, "Uniform", estimators=["IPS"])["IPS"].reason
    for name in ("log.csv", "log.parquet"):
        main(["player", "log", "banner", "--store", url, "--out", str(tmp_path / name)])
        back = Log.read(tmp_path / name)
        assert np.array_equal(back.batch_size, log.batch_size)
        assert np.array_equal(back.units.start, log.units.start)
        assert evaluate(back, "Uniform")["SNIPS"] == evaluate(log, "Uniform")["SNIPS"]
    with pytest.raises(UserError, match="dsjson has no place for decisions that were made at once"):
        dsjson_of(log)
    capsys.readouterr()
    main(["evaluate", url, "--player", "banner", "--estimator", "IPS", "--policy", "Uniform", "--replay"])
    said = " ".join(capsys.readouterr().out.split())
    assert "100 decisions" in said
    assert "made at once" in replay(log, "Thompson").reason


def test_requests_for_different_arms_are_a_batch_of_what_was_drawn(tmp_path):
    """A unit that has its decision already is no part of the batch, and does not count in its probabilities."""
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", "EpsilonGreedy(epsilon=0.5)", arms=["red", "green", "blue"]) as player:
        ((stands,),) = carried_out(player, DecideRequest(units=["anna"]))
        (made,) = carried_out(player, DecideRequest(units=["anna", "bert", "carl"], distinct=True))
        (alone,) = carried_out(player, DecideRequest(units=["anna", "dora"], distinct=True))
        frame = player.log()
    assert made[0].id == stands.id
    assert frame["batch_size"].tolist() == [1, 2, 2, 1]
    assert frame["batch"].nunique() == 1
    assert frame["probability"].tolist()[1:3] == pytest.approx([2.0 / 3.0] * 2)
    assert alone[1].probability == pytest.approx(1.0 / 3.0)


def test_a_log_that_keeps_its_batches_secret_is_told_so():
    log = played_by_numbers(400)
    without = Log(log.arms, log.arm, log.probability, log.reward)
    assert "a column batch must say which" in evaluate(without, "Uniform")["IPS"].reason
    assert not evaluate(log, "Uniform")["IPS"].reason


def played_by_numbers(batches):
    rng = np.random.default_rng(8)
    arm = np.concatenate([rng.permutation(4)[:2] for _ in range(batches)])
    return Log(
        range(4), arm, np.full(arm.size, 0.5), rng.random(arm.size), batch=np.repeat(np.arange(batches), 2)
    )


@each(
    ("columns", "message"),
    [
        ({"batch": ["x", "y", "x"]}, "batch 'x' must stand next to each other"),
        ({"batch": ["x", "x", "x"]}, "has an arm twice"),
        ({"batch": ["x", "x", None], "batch_size": [2, 3, 1]}, "must be one number"),
        ({"batch": ["x", "x", None], "batch_size": [1, 1, 1]}, "at least that of its rows"),
        ({"batch": ["x", "x", None], "batch_size": [3, 3, 1]}, "cannot be on 2 different arms"),
        ({"batch_size": [2, 2, 1]}, "needs a column batch"),
        ({"batch": ["x"]}, "1 entries"),
    ],
)
def test_batches_that_cannot_be_are_refused(columns, message):
    with pytest.raises(UserError, match=message):
        Log(["a", "b"], [0, 1, 0], [0.5] * 3, [1.0, 0.0, 1.0], **columns)


def test_side_observations_of_a_batch_are_refused_and_not_kept(tmp_path):
    side = Side(np.array([0, 1, 1]), np.array([2]), np.array([1.0]), np.array([0.5]))
    with pytest.raises(UserError, match="side observations of a batch"):
        Log(["a", "b", "c"], [0, 1], [0.5] * 2, [1.0, 0.0], side=side, batch=["x", "x"])
    graph = Graph.from_edges([(0, 1), (1, 2)])
    with Player.open(
        f"sqlite:///{tmp_path}/g.db", "g", "Exp3SET(eta=0.6)", 3, graph=graph, horizon=9
    ) as player:
        player.decide_many(2)
        assert player.log()["observed"].tolist() == [None, None]
