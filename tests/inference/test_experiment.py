"""An experiment read off its rows: what is said, and one sentence for each bad input."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import abex
from abex import UserError, experiment
from abex.cli import main


def clicks(rows=4000, rates=(0.10, 0.16), seed=0, shares=None):
    """A randomised experiment on as many arms as there are rates."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(len(rates), rows, p=shares)
    return pd.DataFrame(
        {
            "variant": np.array(["A", "B", "C", "D"])[arm],
            "clicked": (rng.random(rows) < np.array(rates)[arm]).astype(int),
            "p": 0.5,
        }
    )


def shown(frame, **options):
    return experiment(frame, arm="variant", reward="clicked", **options)


def test_the_better_arm_wins_and_the_table_has_its_numbers():
    frame = clicks()
    found = shown(frame, control="A")
    assert found.winner.winner == "B"
    assert 100 < found.decided_at < 4000
    a, b = found.arms
    assert a.n == (frame.variant == "A").sum()
    assert b.rate == pytest.approx(frame[frame.variant == "B"].clicked.mean())
    assert b.interval[0] < 0.16 < b.interval[1]
    assert b.lift == pytest.approx(b.rate / a.rate - 1)
    assert 0.0 < b.lift_interval[0] < 0.6 < b.lift_interval[1]
    assert a.lift is None
    assert a.chance_to_be_best + b.chance_to_be_best == pytest.approx(1.0)
    assert "B is best (wrong in at most 5 % of such experiments), after" in str(found)
    assert "lift against A" in str(found)
    assert "estimated from the shares" in str(found)
    assert ">B</td>" in found._repr_html_()


@pytest.mark.parametrize("probability", ["p", 0.5, {"A": 0.5, "B": 0.5}])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_frames_and_designs_are_alike(make, probability):
    columns = {name: clicks(rows=1500)[name].to_numpy() for name in ("variant", "clicked", "p")}
    found = shown(make(columns), probability=probability)
    assert found.winner == shown(pd.DataFrame(columns), probability=0.5).winner
    assert not any("estimated" in note for note in found.notes)


def test_probabilities_that_change_are_bet_on_for_two_arms_and_not_for_three():
    rng, rows = np.random.default_rng(1), 3000
    p = 0.2 + 0.6 * rng.random(rows)
    arm = (rng.random(rows) >= p).astype(int)
    frame = pd.DataFrame(
        {"variant": arm, "clicked": rng.random(rows) < 0.2 + 0.1 * arm, "p": np.where(arm == 0, p, 1 - p)}
    )
    two = shown(frame, probability="p")
    assert (two.winner.winner, two.winner.method) == ("1", "bets")
    assert two.trial.probabilities == pytest.approx(np.column_stack([p, 1 - p]))
    three = shown(frame.assign(variant=np.where(np.arange(rows) % 7 == 0, 2, arm)), probability="p")
    assert three.winner.method == "sums"
    assert "unknown" in three.notes[0]


def test_an_allocation_that_does_not_fit_is_a_warning():
    found = shown(clicks(rates=(0.1, 0.1), shares=[0.56, 0.44]))
    assert any("sample-ratio mismatch: A has 5" in note for note in found.notes)
    assert not any("mismatch" in note for note in shown(clicks(rates=(0.1, 0.1))).notes)


def test_equal_arms_may_stop_where_no_difference_matters():
    found = shown(clicks(rows=9000, rates=(0.1, 0.1)), at_least=0.05)
    assert found.winner.winner is None
    assert found.winner.sentence.startswith("keep ")
    assert found.winner.remaining == 0


def test_revenue_has_differences_and_three_customers_are_named():
    rng, rows = np.random.default_rng(2), 2000
    frame = clicks(rows=rows).assign(clicked=np.round(rng.exponential(2.0, rows), 2).clip(0, 400))
    plain = shown(frame, control="A", rewards=(0, 500))
    assert not plain.is_coin
    assert not any("carried" in note for note in plain.notes)
    assert plain.arms[0].interval[0] < 2.0 < plain.arms[0].interval[1]
    assert plain.arms[1].lift == pytest.approx(plain.arms[1].rate - plain.arms[0].rate)
    assert "difference to A" in str(plain)
    frame.loc[[10, 20, 30], ["variant", "clicked"]] = ["B", 480.0]
    assert any("mean of B is carried by 3 rows" in note for note in shown(frame, rewards=(0, 500)).notes)


def test_chances_to_be_best_of_other_rewards_are_those_of_normal_posteriors():
    frame = clicks(rates=(0.5, 0.5)).assign(clicked=np.random.default_rng(3).random(4000))
    found = shown(frame)
    a, b = (frame[frame.variant == name].clicked for name in "AB")
    z = (b.mean() - a.mean()) / math.hypot(a.std() / len(a) ** 0.5, b.std() / len(b) ** 0.5)
    assert found.arms[1].chance_to_be_best == pytest.approx(0.5 * math.erfc(-z / 2**0.5), abs=2e-3)


BAD = {
    "no rows": (lambda f: f.iloc[:0], {}, "has no rows"),
    "one arm": (lambda f: f[f.variant == "A"], {}, "one arm alone, 'A'"),
    "no such control": (lambda f: f, {"control": "Z"}, "no arm 'Z' for a control: arms are A, B"),
    "reward outside": (lambda f: f.assign(clicked=f.clicked * 7), {}, "reward of 7, outside the range 0 to 1"),
    "all alike": (lambda f: f.assign(clicked=0), {}, "all rewards are 0: nothing tells the arms apart"),
    "risk 0": (lambda f: f, {"risk": 0}, "risk must be"),
    "risk 1": (lambda f: f, {"risk": 1.0}, "risk must be"),
    "shares do not fit": (lambda f: f, {"probability": {"A": 0.9, "B": 0.1}}, "do not fit the shares: "),
    "no sum": (lambda f: f, {"probability": 0.3}, "add up to 0.6, not 1"),
    "no arm of that name": (lambda f: f, {"probability": {"A": 0.5, "Z": 0.5}}, "'B' is not in both"),
    "no probability": (lambda f: f.assign(p=0.0), {"probability": "p"}, "row 0 of the table has a probability of 0"),
    "no column": (lambda f: f, {"probability": "pp"}, "no column 'pp' for the probability"),
    "a hole": (lambda f: f.assign(clicked=[None, *f.clicked[1:]]), {}, "0 of the table has no number for the reward, but nan"),
    "a word": (lambda f: f.assign(clicked=["yes", *f.clicked[1:]]), {}, "but 'yes'"),
    "no arm": (lambda f: f.assign(variant=[None, *f.variant[1:]]), {}, "row 0 of the table has no arm"),
    "a range": (lambda f: f, {"rewards": (1, 0)}, "the smaller first"),
    "a difference": (lambda f: f, {"at_least": 0}, "at_least must be > 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name):
    change, options, said = BAD[name]
    with pytest.raises(UserError) as caught:
        shown(change(clicks(rows=400)), **options)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 200


def test_the_command_writes_a_table_a_figure_and_a_page(tmp_path, capsys):
    file, page, figure = tmp_path / "results.csv", tmp_path / "result.html", tmp_path / "result.svg"
    clicks().to_csv(file, index=False)
    main(["experiment", str(file), "--arm", "variant", "--reward", "clicked", "--control", "A",
          "--probability", json.dumps({"A": 0.5, "B": 0.5}), "--out", str(figure), "--report", str(page)])  # fmt: skip
    assert "B is best" in capsys.readouterr().out
    assert "decided" in figure.read_text()
    text = page.read_text()
    assert "<h1>B is best" in text
    assert text.count("B is best") == 2  # the title of the page and its heading
    assert "data:image/png" in text
    assert '<td data-column="lift against A">' in text  # what a narrow screen shows in place of the headings
    assert "http" not in text.replace("http-equiv", "")


def test_a_bad_line_is_named_by_the_command(tmp_path, capsys):
    file = tmp_path / "results.csv"
    clicks(rows=50).assign(clicked=lambda f: [*f.clicked[:9], "x", *f.clicked[10:]]).to_csv(file, index=False)
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", str(file), "--arm", "variant", "--reward", "clicked"])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert "line 11 of " in error
    assert error.count("\n") == 1


def test_it_is_a_name_of_the_package():
    assert abex.experiment is experiment
