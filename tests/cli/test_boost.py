"""`abex boost` as a person uses it."""

from __future__ import annotations

import csv

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
    assert np.mean([row["class"] == fruit for row, fruit in zip(answers, truth, strict=True)]) > 0.95
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
    assert "(or 'colour' with words)" in capsys.readouterr().err


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
    run("train", file, "--iterations", 20, "--base", "stump", "--out", tmp_path / "model", *options)
    return tmp_path / "model.abex"


def predicted(tmp_path, model, file, *options):
    """The table that `predict` writes."""
    run("predict", model, file, "--out", tmp_path / "answers.csv", *options)
    return pd.read_csv(tmp_path / "answers.csv")


def written(path, text):
    path.write_text(text)
    return path


# -- classes ------------------------------------------------------------------------------------------------


# -- the columns of a table ---------------------------------------------------------------------------------


def test_a_word_among_numbers_is_named(fruit, tmp_path, capsys):
    model = trained(tmp_path, fruit)
    other = written(tmp_path / "other.csv", "weight,colour\n150,red\nheavy,green\n")
    said = refused(capsys, "predict", model, other)
    assert "'weight'" in said
    assert "'heavy'" in said
    other.write_text("weight,colour\n150,red\ninf,green\n")
    assert "infinite value in column 'weight'" in refused(capsys, "predict", model, other)


def test_booleans_of_one_format_are_those_of_another(tmp_path):
    table = "flag,y\n" + "True,a\nFalse,b\n" * 20
    model = trained(tmp_path, written(tmp_path / "t.csv", table))
    words = tmp_path / "t.parquet"
    pd.DataFrame({"flag": ["True", "False"]}).to_parquet(words)
    assert predicted(tmp_path, model, words)["class"].tolist() == ["a", "b"]


def test_words_may_hold_an_equals_sign(tmp_path):
    table = "colour,colour=g,y\n" + "green=x,1,a\nred=y=z,2,b\n" * 20
    file = written(tmp_path / "t.csv", table)
    answers = predicted(tmp_path, trained(tmp_path, file), file)
    assert answers["class"].tolist() == ["a", "b"] * 20


def test_columns_that_would_have_one_name_are_refused(tmp_path, capsys):
    file = written(tmp_path / "t.csv", "colour,colour=red,y\n" + "red,1,a\nblue,2,b\n" * 20)
    assert "'colour=red'" in refused(capsys, "train", file, "--out", tmp_path / "model")


def test_unknown_words_are_told(fruit, tmp_path, capsys):
    model = trained(tmp_path, fruit)
    other = written(tmp_path / "other.csv", "weight,colour\n150,blue\n120,pink\n110,red\n")
    capsys.readouterr()
    predicted(tmp_path, model, other)
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    for part in ("'colour'", "'blue'", "'pink'", "none of the known"):
        assert part in said
    predicted(tmp_path, model, fruit)
    assert capsys.readouterr().err == ""


def test_a_missing_word_is_refused_and_a_missing_number_is_not(fruit, tmp_path, capsys):
    model = trained(tmp_path, fruit)
    other = written(tmp_path / "other.csv", "weight,colour\n,red\n120,green\n")
    assert len(predicted(tmp_path, model, other)) == 2
    other.write_text("weight,colour\n150,red\n120,\n")
    assert "missing value in column 'colour'" in refused(capsys, "predict", model, other)


def test_words_that_look_like_numbers_stay_words(tmp_path, capsys):
    table = "size,y\n" + "10,a\n12,b\nL,a\n" * 20
    model = trained(tmp_path, written(tmp_path / "t.csv", table))
    capsys.readouterr()
    answers = predicted(tmp_path, model, written(tmp_path / "n.csv", "size\n10\n12\n"))
    assert answers["class"].tolist() == ["a", "b"]
    floats = tmp_path / "n.parquet"
    pd.DataFrame({"size": [10.0, 12.0]}).to_parquet(floats)
    assert predicted(tmp_path, model, floats)["class"].tolist() == ["a", "b"]
    assert capsys.readouterr().err == ""
    blank = written(tmp_path / "b.csv", "size,more\n10,1\n12,1\n,1\n")
    assert "missing value in column 'size'" in refused(capsys, "predict", model, blank)


def test_an_unknown_target_does_not_hinder_a_prediction(tmp_path):
    model = trained(tmp_path, written(tmp_path / "t.csv", "x,y\n" + "1,a\n2,b\n" * 20))
    answers = predicted(tmp_path, model, written(tmp_path / "n.csv", "x,y\n1,?\n2,?\n"))
    assert answers["class"].tolist() == ["a", "b"]


# -- matrices -----------------------------------------------------------------------------------------------


def matrix_files(tmp_path):
    """Rows of numbers with two classes under every format of matrices, with and without classes."""
    X = np.zeros((40, 3))
    X[:, 0], X[:, 1] = np.arange(40), np.arange(40) % 5
    y = (X[:, 0] > 20).astype(int)
    X[::2, 2] = 1
    lines = [" ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value) for row in X]
    lines[0] = "1:0 " + lines[0]
    labelled = [f"{label} {line}" for label, line in zip(y, lines, strict=True)]
    files = {
        "y.svm": "\n".join(labelled) + "\n",
        "x.svm": "\n".join(lines) + "\n",
        "short.svm": "\n".join(line for line in labelled if "3:" not in line) + "\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    np.savez(tmp_path / "y.npz", X=X, y=y)
    np.savez(tmp_path / "x.npz", X=X)
    np.save(tmp_path / "y.npy", np.column_stack([X, y]))
    np.save(tmp_path / "x.npy", X)
    return y


@pytest.mark.parametrize("source", ["y.svm", "y.npz", "y.npy"])
def test_matrices_are_predicted_with_and_without_classes(tmp_path, capsys, source):
    y = matrix_files(tmp_path)
    model = trained(tmp_path, tmp_path / source)
    for name in ("y.svm", "x.svm", "y.npz", "x.npz", "y.npy", "x.npy"):
        assert predicted(tmp_path, model, tmp_path / name)["class"].tolist() == y.tolist()
    assert predicted(tmp_path, model, tmp_path / "short.svm")["class"].tolist() == y[1::2].tolist()
    np.save(tmp_path / "wide.npy", np.zeros((3, 9)))
    assert "the 3 columns" in refused(capsys, "predict", model, tmp_path / "wide.npy")


def test_an_empty_line_of_a_sparse_file_without_classes_is_a_row_of_zeros(tmp_path):
    model = trained(tmp_path, written(tmp_path / "t.svm", "0 1:0 2:1\n1 1:5 2:1\n" * 20))
    answers = predicted(tmp_path, model, written(tmp_path / "n.svm", "# mine\n1:5\n\n1:5 2:2\n"))
    assert answers["class"].tolist() == [1, 0, 1]


def test_a_matrix_has_no_names_for_a_model_that_needs_them(fruit, tmp_path, capsys):
    matrix_files(tmp_path)
    model = trained(tmp_path, fruit)
    for name in ("y.svm", "x.npz", "y.npy"):
        assert "has no names of columns" in refused(capsys, "predict", model, tmp_path / name)


def test_a_model_of_many_labels_answers_with_a_column_for_each(tmp_path):
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 5})
    y = np.column_stack([X["a"] > 20, X["b"] > 2, X["a"] < 9]).astype(int)
    AdaBoostMHClassifier(30, base="stump", random_state=0).fit(X, y).save(tmp_path / "many.abex")
    X.assign(c=1).to_csv(tmp_path / "t.csv", index=False)
    answers = predicted(tmp_path, tmp_path / "many.abex", tmp_path / "t.csv")
    assert np.array_equal(answers[["label 0", "label 1", "label 2"]], y)
    assert answers["probability 2"].between(0, 1).all()


# -- rows ---------------------------------------------------------------------------------------------------


def test_blank_numbers_are_learned_from(tmp_path):
    table = "x,z,y\n" + ",1,a\n5,1,b\n6,,b\n" * 20
    file = written(tmp_path / "t.csv", table)
    answers = predicted(tmp_path, trained(tmp_path, file), file)
    assert answers["class"].tolist() == ["a", "b", "b"] * 20


def test_rows_for_the_test_come_from_a_second_file(fruit, tmp_path, capsys):
    few = written(tmp_path / "few.csv", "weight,colour,fruit\n150,red,apple\n90,green,lemon\n")
    assert "--test" in refused(capsys, "train", few, "--out", tmp_path / "model")
    trained(tmp_path, few, "--test", fruit)
    assert "takes no options" in refused(capsys, "train", "digits", "--test", fruit)


def test_a_column_whose_name_is_a_number_can_be_the_target(tmp_path):
    table = "2020,1,kind\n" + "a,1,x\nb,2,y\n" * 10
    file = written(tmp_path / "t.csv", table)
    for target, classes in (("2020", "ab"), ("1", "12"), ("0", "ab"), ("-1", "xy")):
        model = trained(tmp_path, file, "--target", target)
        assert "".join(saved(model).classes_) == classes


# -- options ------------------------------------------------------------------------------------------------


@each(
    ("option", "value"),
    [
        ("--seed", -1),
        ("--seed", 99999999999),
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
