"""`abex boost` as a person uses it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from abex.cli import main

pytest.importorskip("abex.datasets", reason="the data sets are needed to train on one")


def run(*arguments):
    return main(["boost", *[str(argument) for argument in arguments]])


@pytest.fixture
def fruit(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["weight,colour,fruit"]
    for _ in range(120):
        apple = rng.random() < 0.5
        weight = rng.normal(150 if apple else 100, 10)
        colour = rng.choice(["red", "green"] if apple else ["yellow", "green"])
        lines.append(f"{weight:.1f},{colour},{'apple' if apple else 'lemon'}")
    file = tmp_path / "fruit.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_train_evaluate_and_predict_on_a_persons_own_file(fruit, tmp_path, capsys):
    model = tmp_path / "fruit"
    run("train", fruit, "--iterations", 30, "--policy", "UCB1", "--out", model)
    said = capsys.readouterr().out
    assert "error at the end" in said
    assert "pulls of" in said
    assert (tmp_path / "fruit.png").stat().st_size > 1000
    run("evaluate", f"{model}.abex", fruit, "--out", tmp_path / "confusion.png")
    said = capsys.readouterr().out
    assert "logarithmic loss" in said
    assert (tmp_path / "confusion.png").exists()
    run("predict", f"{model}.abex", fruit, "--out", tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv") as file:
        answers = list(csv.DictReader(file))
    with open(fruit) as file:
        truth = [row["fruit"] for row in csv.DictReader(file)]
    assert np.mean([row["class"] == fruit for row, fruit in zip(answers, truth, strict=True)]) > 0.95
    assert float(answers[0]["probability apple"]) + float(answers[0]["probability lemon"]) == pytest.approx(1)


def test_compare_puts_policies_into_one_table(tmp_path, capsys):
    options = ["--base", "stump", "--iterations", 60, "--seeds", 2, "--out", tmp_path / "compared"]
    run("compare", "digits", "--policy", "UCB1", "--policy", "none", *options)
    said = capsys.readouterr().out
    assert "UCB1" in said
    assert "entropy of choice" in said
    assert (tmp_path / "compared.png").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "digits", "--policy", "ABEE"], "unknown policy 'ABEE'"),
        (["train", "digitz"], "did you mean 'digits'"),
        (["train", "digits", "--out", "/no/such/folder/model"], "there is no folder"),
        (["evaluate", "nothing.abex", "digits"], "there is no model file 'nothing.abex'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_a_column_that_is_missing_is_named(fruit, tmp_path, capsys):
    run("train", fruit, "--iterations", 5, "--out", tmp_path / "fruit")
    other = tmp_path / "other.csv"
    other.write_text("colour\nred\n")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run("predict", tmp_path / "fruit.abex", other)
    assert "has no column 'weight'" in capsys.readouterr().err
