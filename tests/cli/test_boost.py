"""`abex boost` as a person uses it."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd
import pytest

from abex.boosting import AdaBoostMHClassifier
from abex.boosting import load as saved
from abex.cli import main
from tests.each import each


def run(*arguments):
    return main(["boost", *[str(argument) for argument in arguments]])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def test_train_and_predict_on_a_persons_own_file(fruit, tmp_path, capsys):
    model = tmp_path / "fruit"
    run("train", fruit, "--iterations", 30, "--policy", "UCB1", "--out", model)
    said = capsys.readouterr().out
    assert "error at the end" in said
    assert "pulls of" in said
    assert (tmp_path / "fruit.png").stat().st_size > 1000
    run("predict", f"{model}.abex", fruit, "--out", tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv") as file:
        answers = list(csv.DictReader(file))
    with open(fruit) as file:
        truth = [row["fruit"] for row in csv.DictReader(file)]
    assert np.mean([row["predicted"] == fruit for row, fruit in zip(answers, truth, strict=True)]) > 0.95
    assert float(answers[0]["probability apple"]) + float(answers[0]["probability lemon"]) == pytest.approx(1)


@each(
    ("arguments", "said"),
    [
        (["train", "digits", "--policy", "ABEE"], "unknown policy 'ABEE'"),
        (["train", "digitz"], "did you mean 'digits'"),
        (["train", "digits", "--out", "/no/such/folder/model"], "there is no folder"),
        (["predict", "nothing.abex", "fruit.csv"], "there is no model file 'nothing.abex'"),
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
    other.write_text("weight\n150\n")
    with pytest.raises(SystemExit):
        run("predict", tmp_path / "fruit.abex", other)
    assert "has no column 'colour'" in capsys.readouterr().err


def refused(capsys, *arguments):
    """What a command says that stops with exit code two: one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    return error


def trained(tmp_path, file, *options):
    """The path of a small model of the file."""
    run("train", file, "--iterations", 20, "--out", tmp_path / "model", *options)
    return tmp_path / "model.abex"


def predicted(tmp_path, model, file, *options):
    """The table that `predict` writes."""
    run("predict", model, file, "--out", tmp_path / "answers.csv", *options)
    return pd.read_csv(tmp_path / "answers.csv")


def written(path, text):
    path.write_text(text)
    return path


# -- the columns of a table ---------------------------------------------------------------------------------


def test_a_word_among_numbers_is_named(fruit, tmp_path, capsys):
    model = trained(tmp_path, fruit)
    other = written(tmp_path / "other.csv", "weight,colour\n150,red\nheavy,green\n")
    said = refused(capsys, "predict", model, other)
    assert re.search(
        r"column 'weight' of .*other\.csv has 'heavy' in line 3 where the model needs numbers", said
    )
    other.write_text("weight,colour\n150,red\ninf,green\n")
    assert "infinite" in refused(capsys, "predict", model, other)


def test_blanks_and_unknown_words_are_missing(fruit, tmp_path):
    model = trained(tmp_path, fruit)
    other = written(tmp_path / "other.csv", "weight,colour\n,red\n150,\n150,pink\n")
    answers = predicted(tmp_path, model, other)
    assert len(answers) == 3
    assert answers["predicted"][1] == "apple"
    assert answers["probability apple"][1] == answers["probability apple"][2]


def test_words_that_look_like_numbers_stay_words(tmp_path):
    table = "size,y\n" + "010,a\n12,b\nL,a\n" * 20
    model = trained(tmp_path, written(tmp_path / "t.csv", table))
    answers = predicted(tmp_path, model, written(tmp_path / "n.csv", "size\n010\n12\n"))
    assert answers["predicted"].tolist() == ["a", "b"]
    model = trained(tmp_path, written(tmp_path / "t.csv", table.replace("010", "10")))
    pd.DataFrame({"size": [10.0, 12.0]}).to_parquet(tmp_path / "n.parquet")
    assert predicted(tmp_path, model, tmp_path / "n.parquet")["predicted"].tolist() == ["a", "b"]


def test_an_unknown_target_does_not_hinder_a_prediction(tmp_path):
    model = trained(tmp_path, written(tmp_path / "t.csv", "x,y\n" + "1,a\n2,b\n" * 20))
    answers = predicted(tmp_path, model, written(tmp_path / "n.csv", "x,y\n1,?\n2,?\n"))
    assert answers["predicted"].tolist() == ["a", "b"]


def test_a_file_that_lacks_a_column_of_the_model_is_refused(fruit, tmp_path, capsys):
    other = written(tmp_path / "o.csv", "size\n1\n")
    assert "has no column 'weight'" in refused(capsys, "predict", trained(tmp_path, fruit), other)
    X = np.column_stack([np.arange(40), np.arange(40) % 5])
    AdaBoostMHClassifier(5, random_state=0).fit(X, X[:, 0] > 20).save(tmp_path / "bare.abex")
    assert "without names" in refused(capsys, "predict", tmp_path / "bare.abex", other)


def test_a_model_of_many_labels_answers_with_a_column_for_each(tmp_path):
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 5})
    y = np.column_stack([X["a"] > 20, X["b"] > 2, X["a"] < 9]).astype(int)
    AdaBoostMHClassifier(30, base="stump", random_state=0).fit(X, y).save(tmp_path / "many.abex")
    X.assign(c=1).to_csv(tmp_path / "t.csv", index=False)
    answers = predicted(tmp_path, tmp_path / "many.abex", tmp_path / "t.csv")
    assert np.array_equal(answers[["predicted 0", "predicted 1", "predicted 2"]], y)
    assert answers["probability 2"].between(0, 1).all()


# -- rows ---------------------------------------------------------------------------------------------------


def test_blank_numbers_are_learned_from(tmp_path):
    table = "x,z,y\n" + ",1,a\n5,1,b\n6,,b\n" * 20
    file = written(tmp_path / "t.csv", table)
    answers = predicted(tmp_path, trained(tmp_path, file), file)
    assert answers["predicted"].tolist() == ["a", "b", "b"] * 20


def test_a_file_of_too_few_rows_and_a_target_of_a_data_set_are_told(fruit, tmp_path, capsys):
    few = written(tmp_path / "few.csv", "weight,colour,fruit\n150,red,apple\n90,green,lemon\n")
    assert "too few rows" in refused(capsys, "train", few, "--out", tmp_path / "model")
    assert "--target is for files" in refused(capsys, "train", "digits", "--target", "x")


def test_a_column_whose_name_is_a_number_can_be_the_target(tmp_path):
    table = "2020,1,kind\n" + "a,1,x\nb,2,y\n" * 10
    file = written(tmp_path / "t.csv", table)
    for target, classes in (("2020", "ab"), ("1", "12"), ("0", "ab"), ("-1", "xy")):
        model = trained(tmp_path, file, "--target", target)
        assert "".join(map(str, saved(model).classes_)) == classes


# -- options ------------------------------------------------------------------------------------------------


@each(
    ("option", "value"),
    [
        ("--iterations", 0),
        ("--iterations", 99999999999),
        ("--iterations", 10**30),
    ],
)
def test_numbers_out_of_bounds_are_told(tmp_path, capsys, option, value):
    said = refused(capsys, "train", "digits", option, value, "--out", tmp_path / "model")
    assert option.strip("-") in said or "n_estimators" in said


def test_more_classifiers_than_fit_into_memory_are_told(tmp_path, capsys, monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(AdaBoostMHClassifier, "fit", no_memory)
    assert "memory" in refused(capsys, "train", "digits", "--out", tmp_path / "model")


def test_full_search_is_not_told_as_a_choice(fruit, tmp_path, capsys):
    trained(tmp_path, fruit, "--policy", "none")
    said = capsys.readouterr().out
    assert "uniform choice" not in said
    assert "every feature was tried" in said


def test_the_last_line_is_the_score_on_the_rows_held_out(fruit, tmp_path, capsys):
    trained(tmp_path, fruit)
    said = capsys.readouterr().out.splitlines()
    found = re.fullmatch(
        r"right on ([\d.]+)% of the 30 rows held out; their most frequent class has ([\d.]+)%", said[-1]
    )
    assert 90 < float(found[1]) <= 100
    assert 50 <= float(found[2]) < 65
    assert not [line for line in said if "entropy" in line]


def test_what_nothing_can_be_learned_from_is_said(tmp_path, capsys):
    rows = [f"f{row},{row % 7},{row % 5 * 1.5},apple" for row in range(40)]
    file = tmp_path / "one.csv"
    file.write_text("\n".join(["name,a,b,kind", *rows]) + "\n")
    trained(tmp_path, file)
    said = capsys.readouterr().err
    assert "every row is of the class 'apple'" in said
    assert re.search(r"column 'name' of .*one\.csv names the rows: it is left out", said)
    assert "'a'" not in said


def test_rows_keep_their_names_and_whatever_else_the_model_does_not_need(fruit, tmp_path, capsys):
    table = pd.read_csv(fruit)
    table.insert(0, "id", [f"{row:03}" for row in range(len(table))])
    table.to_csv(tmp_path / "named.csv", index=False)
    model = trained(tmp_path, tmp_path / "named.csv")
    assert saved(model).feature_names_in_.tolist() == ["weight", "colour"]
    answers = predicted(tmp_path, model, tmp_path / "named.csv")
    assert (tmp_path / "answers.csv").read_text().splitlines()[8].startswith("007,")
    assert answers.columns.tolist() == ["id", "fruit", "predicted", "probability apple", "probability lemon"]
    again = predicted(tmp_path, model, tmp_path / "named.csv", "--out", tmp_path / "again.csv")
    assert again.equals(answers)
    table[answers.columns[2:]] = "old"
    table.to_csv(tmp_path / "named.csv", index=False)
    assert predicted(tmp_path, model, tmp_path / "named.csv").equals(
        answers
    )  # answers of before are replaced
    (tmp_path / "ids.csv").write_text("id,kind\n" + "".join(f"c{row},{'ab'[row % 2]}\n" for row in range(30)))
    with pytest.raises(SystemExit):
        run("train", tmp_path / "ids.csv", "--out", tmp_path / "model")
    assert "ids.csv has no column to learn from" in capsys.readouterr().err


def test_a_word_among_numbers_is_told_with_its_line(tmp_path, capsys):
    rows = [f"{row % 7},{row % 5},{'ab'[row % 7 > 3]}" for row in range(40)]
    rows[20] = f"?,{rows[20][2:]}"
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y", *rows[:10], "", *rows[10:]]) + "\n")
    trained(tmp_path, tmp_path / "t.csv")
    assert "column 'x' of" in (said := capsys.readouterr().err)
    assert "has '?' in line 23 among numbers" in said
    assert "'z'" not in said


@each(
    ("row", "said"),
    [("inf,2,pear", r"column 'a', line 5: correct or drop"), ("1,2,", r"target of .* has a missing value in line 5: drop")],
)  # fmt: skip
def test_a_wrong_row_is_named_by_its_line(tmp_path, capsys, row, said):
    file = tmp_path / "fruit.csv"
    file.write_text("\n".join(["a,b,kind", *["1,2,apple", "2,3,pear", "3,3,pear"], row, "4,4,apple"]) + "\n")
    assert re.search(said, refused(capsys, "train", file, "--out", tmp_path / "model"))
