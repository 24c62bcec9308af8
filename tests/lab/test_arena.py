"""The arena: its grids, its cells, its scores and its command."""

import dataclasses
import hashlib
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from abex import Bernoulli, DTracking, Evidence, Setting, Thompson, TopTwo, UserError
from abex.cli import group
from abex.cli.help import load_own
from abex.inference import BETS, SUMS
from abex.lab.arena import GRIDS, GROUPS, Instance, grid_of
from abex.lab.arena.guide import answers
from abex.lab.arena.identification import Stops, stop_table, stops_of
from abex.lab.arena.instances import IDENTIFICATION
from abex.lab.arena.page import markdown_of, markdown_table, write_page
from abex.lab.arena.score_tables import guide_table
from abex.lab.arena.scores import score_all, scored
from abex.lab.arena.study import (
    Entry,
    Played,
    arms_of,
    can_play,
    cells_of,
    collect,
    entry_of,
    library,
    method_of,
    replications_for,
    run,
)
from abex.lab.results import Store, key_of
from abex.lab.sweeps.problems import BOOSTING, bandit_problem, check_problem, data_of, late_rewards
from abex.lab.sweeps.until_winner import play_until_winner
from abex.samplers.scan import pick
from abex.support.randomness import counter_key, stream
from abex.theory import garivier_kaufmann
from tests.naive import inference as naive

STAR = {"environment": {"name": "Bernoulli", "means": [0.2, 0.9, 0.3]}, "graph": {"name": "star", "n": 3}}
SMALL = [
    Instance("easy", "stochastic", {"environment": {"name": "Bernoulli", "means": [0.9, 0.1]}}, 400),
    Instance("star", "graphs", STAR, 400),
]
OWN = """
from dataclasses import dataclass
from abex import Policy, kernel
import numpy as np
from typing import Any, NamedTuple

class Nothing(NamedTuple):
    counts: Any

@dataclass(frozen=True)
class AlwaysFirst(Policy):
    arm: int = 0
    def start(self, setting):
        return Nothing(np.full(1, float(self.arm)))
    @staticmethod
    @kernel
    def select(state, t, rng):
        return int(state.counts[0])
    @staticmethod
    @kernel
    def update(state, t, arm, seen, reward, rng):
        state.counts[0] += 0.0
"""


def map_of(page):
    """The rows of the page's last table: groups, names, and a row for each policy."""
    table = page[page.rindex("<table") :]
    return [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]


def test_the_grids_have_the_sizes_they_promise_and_share_no_instance():
    problems = []
    for name in GRIDS:
        grid = grid_of(name)
        counts = {one: sum(i.group == one for i in grid) for one in GROUPS}
        assert counts["stochastic"] >= 30
        assert counts["graphs"] >= 15
        assert counts["late"] >= 6
        assert counts["changing"] == 8
        assert counts["adversarial"] == 6
        assert counts["shop"] >= 17
        assert counts["boosting"] >= 6
        assert max(arms_of(i.problem) for i in grid) == 10_000
        problems.append({json.dumps(i.problem, sort_keys=True) for i in grid})
    assert not problems[0] & problems[1]
    sets = [{i.problem.get("data") for i in grid_of(name)} - {None} for name in GRIDS]
    assert not sets[0] & sets[1]
    with pytest.raises(UserError, match="grid"):
        grid_of("trian")


@pytest.mark.parametrize("name", GRIDS)
def test_every_instance_can_be_played_as_it_is_written(name):
    for one in grid_of(name):
        if one.group == "boosting":
            check_problem(one.problem, BOOSTING)
        elif data_of(one.problem) is None:
            late_rewards(one.problem, None)
            environment, graph = bandit_problem(one.problem)
            assert environment.n_arms == arms_of(one.problem), one.name
            assert graph is None or graph.n_arms == environment.n_arms, one.name
            assert (
                type(environment) is Bernoulli or "K" in one.problem["environment"]
            ) or not one.plain_bernoulli


def test_an_instance_stays_what_it_was_when_it_was_first_played():
    grids = [[dataclasses.astuple(one) for one in grid_of(name)] for name in GRIDS]
    digest = hashlib.sha256(json.dumps(grids, sort_keys=True).encode()).hexdigest()
    assert digest == "5270a0902cc14f93dca6120859ada6849d1adf24c86ff1b0729d7df944c7f724", (
        "give the instance another name"
    )
    assert sum(one.plain_bernoulli for name in GRIDS for one in grid_of(name)) == 31


def test_every_policy_of_the_library_plays_and_slow_ones_less_often():
    entries = {str(entry.policy): entry for entry in library()}
    assert next(iter(entries)) == "Evidence"
    assert "told the horizon" in entries["MOSS"].label
    grid = {one.name: one for one in grid_of("test")}
    drawn, bandit = grid["edges that drop out, hub"], grid["six coins"]
    assert not can_play(entries["UCBMaxN"].policy, bandit)
    assert not can_play(entries["ELP"].policy, drawn)
    assert can_play(entries["UCBMaxN"].policy, drawn)
    assert {"MOSS(anytime=1.35)", "Maillard(divergence='bernoulli')", "EpsilonGreedy(decay=20.0)"} <= set(
        entries
    )
    assert sum(
        cell["replications"] for cell in cells_of(entries["Uniform"], bandit, "test")
    ) == replications_for(entries["Uniform"].policy, bandit)


def test_nearly_all_pairs_are_played_two_hundred_times():
    bandits = [one for one in grid_of("test") if one.group != "boosting"]
    counts = [
        replications_for(entry.policy, one)
        for entry in library()
        for one in bandits
        if can_play(entry.policy, one)
    ]
    assert sum(count == 200 for count in counts) > 0.98 * len(counts)


def test_scores_are_regret_over_the_best_floored_by_uniform_choice():
    means = np.array([[10.0, 0.001, np.nan], [20.0, 5.0, 3.0], [100.0, 100.0, -100.0]])
    scores = scored(means, means[2], np.zeros(3))
    np.testing.assert_allclose(scores[:, 0], [1.0, 2.0, 10.0])
    np.testing.assert_allclose(scores[:, 1], [1.0, 50.0, 1000.0])  # 0.1 % of 100 is 0.1
    assert np.isnan(scores[0, 2])
    np.testing.assert_allclose(
        scored(means, means[2], np.array([15.0, 0.0, 0.0]))[:, 0], [1.0, 4 / 3, 20 / 3]
    )


def test_the_numbers_of_a_policy_are_those_of_its_scores():
    instances = [dataclasses.replace(SMALL[1], name=name) for name in ("a", "b")]
    half = np.full(8, 50.0)
    results = {("Uniform", name): Played(np.full(8, 100.0), half) for name in ("a", "b")}
    results |= {
        ("good", "a"): Played(np.full(8, 1.0), half * 0.01),
        ("good", "b"): Played(np.full(8, 4.0), half * 0.01),
    }
    locked = half * np.array([0.0] * 6 + [0.9, 0.9])
    results |= {
        ("bad", "a"): Played(np.full(8, 9.0), locked),
        ("bad", "b"): Played(np.full(8, 1.0), half * 0.01),
    }
    found = {score.policy: score for score in score_all(results, instances)}
    assert found["good"].geometric == pytest.approx(2.0)
    assert found["good"].mean == pytest.approx(2.5)
    assert (found["bad"].worst, found["bad"].worst_instance) == (9.0, "a")
    assert (found["bad"].linear_runs, found["bad"].runs) == (2, 16)
    assert found["good"].geometric_interval[0] == pytest.approx(1.0)
    assert found["good"].geometric_interval[1] == pytest.approx(4.0)


def test_no_run_counts_as_linear_where_nobody_learns():
    """What can be learned is where somebody loses at most 5 % of uniform choice's second half."""
    instances = [dataclasses.replace(SMALL[0], name=name) for name in ("hard", "easy")]
    seconds = {"Uniform": (50.0, 50.0), "best": (3.0, 2.0), "other": (40.0, 40.0)}
    results = {
        (policy, one.name): Played(np.full(4, 100.0), np.full(4, lost))
        for policy, losses in seconds.items()
        for one, lost in zip(instances, losses, strict=True)
    }
    found = {score.policy: (score.linear_runs, score.runs) for score in score_all(results, instances)}
    assert found == {"Uniform": (4, 4), "best": (0, 4), "other": (4, 4)}


def test_an_own_policy_plays_scores_and_resumes(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN, encoding="utf-8")
    entries = [Entry(Thompson()), entry_of("Uniform"), entry_of("AlwaysFirst(arm=1)", load_own((str(path),)))]
    with Store(tmp_path / "cells.sqlite") as store:
        first = run(entries, SMALL, "train", store, most=3)
        again = run(entries, SMALL, "train", store, most=3)
        results = collect(entries, SMALL, "train", store, most=3)
    assert first.computed == 6
    assert again.computed == 0
    assert results["AlwaysFirst(arm=1)", "easy"].regret == pytest.approx([320.0] * 3)
    assert results["AlwaysFirst(arm=1)", "easy"].second_half == pytest.approx([160.0] * 3)
    page, numbers, _ = write_page(tmp_path, "arena", results, entries, SMALL)
    groups, names, *rows = map_of(page.read_text(encoding="utf-8"))
    assert groups == ["", "stochastic", "graphs"]
    assert names == ["policy", "easy", "star"]
    scores = {row[0]: [float(cell) for cell in row[1:]] for row in rows}
    assert min(score for score, _ in scores.values()) == 1.0 < scores["AlwaysFirst(arm=1)"][0]
    assert "stochastic and graphs" in json.loads(numbers.read_text(encoding="utf-8"))["scores"]
    assert all(cell["code"] == {"mine.py": OWN} for cell in cells_of(entries[2], SMALL[0], "train", most=3))
    assert entry_of("Thompson", {"mine.py": OWN}).code == ()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_light_and_dark_and_sorts(browser, tmp_path, scheme):
    entries = [Entry(Thompson()), entry_of("Uniform")]
    half = np.zeros(5)
    results = {
        (entry.label, one.name): Played(np.full(5, regret), half)
        for entry, regret in zip(entries, (9.0, 90.0), strict=True)
        for one in SMALL
    }
    page_path, *_ = write_page(tmp_path, "arena", results, entries, SMALL)
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme, offline=True)
    page = context.new_page()
    page.goto(page_path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390  # wide tables scroll by themselves
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 26)"}[scheme]
    words = page.evaluate("[...document.querySelectorAll('th.words')].map((head) => head.textContent)")
    assert {"play", "policy"} <= set(words)
    assert "mean" not in words
    cell = page.locator(".map tbody td[style]").first
    assert cell.evaluate("(found) => getComputedStyle(found).color") == "rgb(27, 31, 36)"  # on a light colour
    head = page.locator(".map th", has_text=SMALL[0].name)
    for first in ("Thompson", "Uniform"):
        head.click()
        assert page.locator(".map tbody tr td").first.inner_text() == first
    context.close()


def test_late_rewards_and_boosting_are_played_and_scored(tmp_path):
    late = Instance(
        "late", "late", {"environment": {"name": "Bernoulli", "means": [0.9, 0.1]}, "delay": "Fixed(50)"}, 400
    )
    boosted = [
        Instance(
            f"{base}s", "boosting", {"data": "digits", "part": "validation", "base": base, **more}, 12, most=2
        )
        for base, more in (("stump", {}), ("tree", {"leaves": 4}))
    ]
    entries = [entry_of("Uniform"), Entry(Evidence())]
    with Store(tmp_path / "cells.sqlite") as store:
        assert run(entries, [late, *boosted], "train", store, most=3).failed == []
        results = collect(entries, [late, *boosted], "train", store, most=3)
    assert results["Uniform", "late"].regret.mean() == pytest.approx(160.0, rel=0.2)
    assert results["Evidence", "late"].regret.mean() < 80.0
    stumps, trees = results["Uniform", "stumps"].regret, results["Uniform", "trees"].regret
    assert stumps.size == trees.size == 2
    assert trees.mean() < stumps.mean() < 0.9  # nine in ten are wrong by chance
    (uniform,) = [s for s in score_all(results, [late, *boosted]) if s.policy == "Uniform"]
    assert uniform.runs == 3, "an error of a classifier is no regret that could be linear"


def test_replications_are_blocks_so_that_more_of_them_reuse_the_first():
    few, many = (
        {key_of(cell) for cell in cells_of(Entry(Evidence()), SMALL[0], "train", most)} for most in (50, 200)
    )
    assert few < many


def test_what_a_run_has_stored_when_it_ends_early_can_be_scored(tmp_path):
    entries = [entry_of("Uniform"), entry_of("UCB1")]
    with Store(tmp_path / "cells.sqlite") as store:
        run(entries, SMALL[:1], "train", store, most=50)
        results = collect(entries, SMALL, "train", store)
    assert {pair: played.regret.size for pair, played in results.items()} == {
        ("Uniform", SMALL[0].name): 50, ("UCB1", SMALL[0].name): 50
    }  # fmt: skip


def test_the_command_says_what_it_would_play_and_refuses_what_it_cannot(tmp_path):
    runner = CliRunner()
    plan = runner.invoke(
        group, ["arena", "--grid", "train", "--group", "changing", "--policy", "Thompson", "--dry-run"]
    )
    assert plan.exit_code == 0
    assert "2 policies, 8 instances, 16 pairs" in plan.output
    wrong = runner.invoke(group, ["arena", "--group", "stochastik", "--dry-run"])
    assert isinstance(wrong.exception, UserError)


def test_the_guide_names_the_best_policy_of_each_kind_of_problem():
    instances = [dataclasses.replace(SMALL[0], name=name) for name in ("a", "b", "c")]
    entries = [entry_of(name) for name in ("Uniform", "UCB1", "IMED", "MOSS")]
    regrets = {"Uniform": 100.0, "UCB1": 1.5, "IMED": 2.0, entries[3].label: 1.0}

    def found_with(regrets):
        results = {
            (policy, one.name): Played(np.full(6, lost), np.full(6, lost / 2))
            for policy, lost in regrets.items()
            for one in instances
        }
        return {answer.question: answer for answer in answers(results, entries, instances)}

    found = found_with(regrets)
    assert found["anything"].best.policy == entries[3].label
    assert found["no horizon known"].best.policy == "UCB1"
    assert "a feedback graph" not in found
    assert "| anything | 3 |" in markdown_table(guide_table(list(found.values())))
    dear = found_with(regrets | {"IMED": 0.5})  # which looks at every arm
    assert dear["anything"].best.policy == "IMED"
    assert dear["decisions that must stay cheap with many arms"].best.policy == entries[3].label


def test_the_tables_say_what_was_played():
    instances = [dataclasses.replace(SMALL[0], name=name) for name in ("a", "b")]
    entries = [entry_of(name) for name in ("Uniform", "Thompson")] + [Entry(Evidence())]
    regrets = {"Uniform": (100.0, 90.0), "Thompson": (6.0, 4.0), "Evidence": (2.0, 1.0)}
    results = {
        (policy, one.name): Played(np.full(6, lost), np.full(6, second))
        for policy, (lost, second) in regrets.items()
        for one in instances
    }
    page = markdown_of(results, entries, instances)
    assert "3 policies, 2 instances, 6 pairs of both with 6 replications each: 36 runs." in page
    assert "## Plain coins (2 instances)" in page
    fewer = results | {("Thompson", "a"): Played(np.full(4, 6.0), np.full(4, 4.0))}
    assert "6 replications each, 1 of them fewer, 4 at least: 34 runs." in markdown_of(
        fewer, entries, instances
    )
    assert "| Thompson | 3.00 (3.00 to 3.00) | 3.00 | 3.0 | 3.0 (a) | 0 of 12 |" in page


# -- identification -------------------------------------------------------------------------------------------------------


def test_the_grids_of_identification_are_coins_with_one_best_arm_and_time_for_15_times_the_least():
    grids = [grid_of(name, (IDENTIFICATION,)) for name in GRIDS]
    assert [len(grid) for grid in grids] == [10, 13]
    problems = [{json.dumps(one.problem, sort_keys=True) for one in grid} for grid in grids]
    assert not problems[0] & problems[1]
    for one in (*grids[0], *grids[1]):
        environment, _ = bandit_problem(one.problem)
        assert 15.0 <= one.horizon / garivier_kaufmann(environment.means, 0.01) < 16.5
        assert one.name not in {other.name for name in GRIDS for other in grid_of(name)}
    digest = hashlib.sha256(
        json.dumps([[dataclasses.astuple(one) for one in grid] for grid in grids]).encode()
    )
    assert digest.hexdigest() == "6f4b579cdddf526ced02be47a4a0b5ee629ac30d4517e4d6007fb86e5dd84306", (
        "give the instance another name"
    )


def naive_run(policy, means, seed, replication, risk):
    """Bets worked out anew from all decisions after each of them."""
    world = Bernoulli(means).open(counter_key(seed, replication, "environment"), 1_000)
    state, rng = policy.start(Setting(len(means), 1_000)), stream(seed, replication, "policy", repr(policy))
    arms, rewards, laws, regret = [], [], [], 0.0
    while True:
        law = np.zeros(len(means))
        policy.probabilities(state, len(arms) + 1, law)
        arm = pick(law, 1.0, rng)
        with np.errstate(over="ignore"):
            reward = Bernoulli.draw(world, len(arms) + 1, arm)
        policy.update(state, len(arms) + 1, arm, arm, reward, rng)
        regret += max(means) - means[arm]
        arms.append(arm), rewards.append(reward), laws.append(law)
        _, best = naive.bets(np.array(arms), np.array(rewards), np.array(laws), len(means))
        left = np.flatnonzero(best < 1.0 / risk)
        if left.size == 1:
            return len(arms), left[0], regret


@pytest.mark.parametrize("replication", range(3))
def test_a_run_stops_as_soon_as_bets_leave_one_arm(replication):
    found = play_until_winner(
        TopTwo(),
        Bernoulli([0.2, 0.9, 0.1]),
        horizon=1_000,
        risk=0.1,
        method=BETS,
        seed=5,
        replication=replication,
    )
    assert found == pytest.approx(naive_run(TopTwo(), [0.2, 0.9, 0.1], 5, replication, 0.1))


def test_a_run_by_sums_stops_at_the_first_look_that_names_a_winner_and_a_run_without_one_at_the_horizon():
    ends = [
        play_until_winner(
            DTracking(), Bernoulli([0.2, 0.8]), horizon=horizon, risk=0.01, method=SUMS, seed=1, replication=2
        )
        for horizon in (2_000, 10)
    ]
    assert ends[0].winner == 1
    assert 20 < ends[0].stop < 300
    assert ends[1][:2] == (10, -1)
    before = play_until_winner(
        DTracking(),
        Bernoulli([0.2, 0.8]),
        horizon=ends[0].stop - 2,
        risk=0.01,
        method=SUMS,
        seed=1,
        replication=2,
    )
    assert before.winner == -1
    assert before.regret <= ends[0].regret


def test_who_identifies_is_tested_by_bets_where_every_arm_keeps_a_probability():
    tests = {entry.label: method_of(entry.policy) for entry in library(identifies=True)}
    assert {name for name, test in tests.items() if test == BETS} == {
        "Uniform", "EpsilonGreedy", "Evidence", "TopTwo", "Certify"
    }  # fmt: skip
    assert {"TopTwo(soft=False)", "DTracking", "KLLUCB", "Thompson"} <= tests.keys()
    assert not {entry.label for entry in library()} & {"TopTwo", "Certify"}


def test_the_score_of_identification_is_the_median_stop_over_the_least(tmp_path):
    means = [0.9, 0.1]
    instances = [
        Instance(name, IDENTIFICATION, {"environment": {"name": "Bernoulli", "means": means}}, 400)
        for name in "ab"
    ]
    entries = [entry_of("Uniform"), Entry(TopTwo())]
    with Store(tmp_path / "cells.sqlite") as store:
        assert run(entries, instances, "train", store, most=4).failed == []
        results = collect(entries, instances, "train", store, 4, stops_of)
    one = results["TopTwo", "a"]
    assert one.over_bound.size == 4
    assert one.decided.all()
    assert not one.wrong.any()
    again = play_until_winner(
        TopTwo(), Bernoulli(means), horizon=400, risk=0.01, method=BETS, seed=101, replication=3
    )
    assert one.over_bound[3] == again.stop / garivier_kaufmann(means, 0.01)
    assert one.regret[3] == pytest.approx(again.regret)
    yes, no = np.ones(3, bool), np.zeros(3, bool)
    known = {
        ("Uniform", "a"): Stops(np.array([2.0, 4.0, 9.0]), yes, no, np.full(3, 10.0)),
        ("Uniform", "b"): Stops(np.array([1.0, 1.0, 1.0]), yes, no, np.full(3, 10.0)),
        ("TopTwo", "a"): Stops(
            np.array([1.0, 1.0, 15.0]), np.array([True, True, False]), no, np.full(3, 5.0)
        ),
        ("TopTwo", "b"): Stops(
            np.array([1.0, 1.0, 1.0]), yes, np.array([True, False, False]), np.full(3, 20.0)
        ),
    }
    table = stop_table(known, entries, instances)
    assert table["policy"].tolist() == ["TopTwo", "Uniform"]
    assert [cells[2].split()[0] for cells in table.itertuples(index=False)] == ["1.00", "2.00"]
    assert table.iloc[0].tolist()[1] == BETS
    assert table.iloc[0].tolist()[4:] == ["16.7%", "1 of 6", "1.00"]
    assert table.iloc[1]["worst"] == "4.0 (a)"
    with pytest.raises(UserError, match="uniform choice, the yardstick"):
        stop_table({}, entries, instances)


def test_the_command_plays_identification(tmp_path):
    runner = CliRunner()
    plan = runner.invoke(
        group, ["arena", "--grid", "train", "--group", "identification", "--policy", "TopTwo", "--dry-run"]
    )
    assert "2 policies, 10 instances, 20 pairs" in plan.output
