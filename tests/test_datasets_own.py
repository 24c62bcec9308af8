"""A person's own files: every format gives the same data, and mistakes are one sentence."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.datasets import load, read, read_ratings
from abex.errors import UserError

pd = pytest.importorskip("pandas")

X = np.random.default_rng(0).integers(0, 9, (40, 3))
Y = np.arange(40) % 3
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": Y})


def svm_text(X, y):
    return "".join(
        f"{label} "
        + " ".join(f"{k + 1}:{value}" for k, value in enumerate(row) if value or k == len(row) - 1)
        + "\n"
        for row, label in zip(X, y, strict=True)
    )


def arff_text(frame):
    head = "@relation toy\n" + "".join(f"@attribute {name} numeric\n" for name in "abc")
    return head + "@attribute kind {0,1,2}\n@data\n" + frame.to_csv(header=False, index=False)


def write(path, frame=FRAME):
    """The same data under the format of the path's ending."""
    name = path.name
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["kind"].to_numpy()
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".tsv"):
        frame.to_csv(path, index=False, sep="\t")
    elif name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False, sep=";").encode()))
    elif name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif name.endswith(".arff"):
        path.write_text(arff_text(frame))
    elif name.endswith(".svm"):
        path.write_text(svm_text(X, y))
    elif name.endswith(".npz"):
        np.savez(path, X=X, y=y)
    else:
        np.save(path, np.column_stack([X, y]))
    return path


ENDINGS = [".csv", ".tsv", ".csv.gz", ".parquet", ".arff", ".svm", ".npz", ".npy"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same_data(tmp_path, ending):
    data = read(write(tmp_path / f"toy{ending}"), seed=3)
    plain = read(write(tmp_path / "plain.csv"), seed=3)
    assert np.array_equal(data.X_train, plain.X_train)
    assert np.array_equal(data.X_test, plain.X_test)
    assert np.array_equal(data.y_train, plain.y_train)
    assert data.class_names == plain.class_names == ("0", "1", "2")
    assert data.X_train.dtype == np.uint8
    assert data.name == "toy"
    assert load(tmp_path / f"toy{ending}", seed=3).checksum == data.checksum


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_second_file_is_the_test_set(tmp_path, ending):
    data = read(
        write(tmp_path / f"train{ending}", FRAME[:30]), test=write(tmp_path / f"test{ending}", FRAME[30:])
    )
    assert np.array_equal(data.X_train, X[:30])
    assert np.array_equal(data.X_test, X[30:])
    assert np.array_equal(data.y_test, Y[30:])


@given(
    st.lists(st.sampled_from("abc"), min_size=8, max_size=60), st.integers(0, 50), st.sampled_from([0.2, 0.5])
)
@settings(deadline=None, max_examples=40)
def test_the_set_aside_rows_are_a_share_of_each_class(tmp_path_factory, labels, seed, share):
    path = tmp_path_factory.mktemp("own") / "t.csv"
    labels = [*labels, "a", "a", "a", "b", "b", "b"]
    path.write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    data = read(path, seed=seed, test_share=share)
    assert sorted([*data.X_train[:, 0], *data.X_test[:, 0]]) == list(range(len(labels)))
    for position, name in enumerate(data.class_names):
        n = labels.count(name)
        assert (data.y_test == position).sum() == round(share * n)


def test_words_become_columns_and_any_column_can_be_the_target(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("colour,fruit,size\n" + "red,apple,1.5\ngreen,lime,0.5\n" * 5)
    data = read(path, target="fruit")
    assert data.feature_names == ("colour=green", "colour=red", "size")
    assert data.class_names == ("apple", "lime")
    assert read(path, target=1).checksum == data.checksum
    assert set(map(tuple, data.X_train.tolist())) == {(0.0, 1.0, 1.5), (1.0, 0.0, 0.5)}
    unknown = tmp_path / "u.csv"
    unknown.write_text("colour,fruit,size\nblue,lime,2\n")
    assert read(path, target="fruit", test=unknown).X_test.tolist() == [[0.0, 0.0, 2.0]]


def test_words_of_the_test_file_are_read_as_those_of_the_training_file(tmp_path):
    path, test = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text("size,y\n" + "010,a\n12,b\nL,a\n" * 3)
    test.write_text("size,y\n010,a\n12,b\n")
    assert read(path, test=test).X_test.tolist() == [[1, 0, 0], [0, 1, 0]]
    test.write_text("size,y\n010,a\n,b\n")
    with pytest.raises(UserError, match=r"u\.csv has a missing value in column 'size'"):
        read(path, test=test)


def test_blanks_among_numbers_are_let_through_where_they_are_wanted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size,y\n" + "1,a\n,b\n" * 5)
    data = read(path, missing=True)
    assert np.isnan(data.X_train).any()
    assert np.isnan(data.X_test).any()
    path.write_text("size,y\n" + "1,a\ninf,b\n" * 5)
    with pytest.raises(UserError, match="column 'size'"):
        read(path, missing=True)


def test_the_name_of_a_column_wins_over_a_position(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2020,kind\n" + "a,1,x\nb,2,y\n" * 5)
    assert read(path, target="2020").class_names == ("1", "2")
    assert read(path, target="1").class_names == ("a", "b")
    assert read(path, target="-1").class_names == ("x", "y")
    assert read(path, target=1).class_names == ("1", "2")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.csv", "", "cannot read"),
        ("t.csv", "a,y\n", "no rows"),
        ("t.csv", "a,y\n1,2\n3,4,5,6\n", "cannot read"),
        ("t.csv", "a,y\n1,x\n,y\n2,x\n3,y\n", "column 'a'"),
        ("t.csv", "a,y\nred,x\n,y\nred,x\nred,y\n", "column 'a'"),
        ("t.csv", "a,y\n1,0.5\n2,0.25\n", "must be classes"),
        ("t.csv", "a,y\n1,x\n2,x\n3,x\n", "2 to 1000 classes"),
        ("t.csv", "a,y\n1,x\n2,\n3,y\n", "missing value"),
        ("t.csv", "y\nx\nz\n", "no column beside"),
        ("t.csv", "a,y\n1,x\n2,z\n", "too few rows"),
        ("t.xyz", "a,y\n", "known endings"),
        ("t.arff", "@relation x\n@data\n", "ARFF|no rows"),
        ("t.svm", "1 nonsense\n", "LIBSVM"),
        ("t.npz", "not a zip", "NumPy"),
        ("t.npy", "\x93NUMPY", "NumPy"),
        ("t.parquet", "PAR1", "Parquet"),
        ("t.csv.gz", "not gzip", "damaged"),
    ],
)
def test_wrong_files_are_one_sentence(tmp_path, name, content, complaint):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError, match=complaint) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_wrong_arguments_are_one_sentence(tmp_path):
    path = write(tmp_path / "t.csv")
    with pytest.raises(UserError, match="did you mean 'kind'"):
        read(path, target="kin")
    with pytest.raises(UserError, match="not a column"):
        read(path, target=9)
    with pytest.raises(UserError, match="there is no file"):
        read(tmp_path / "none.csv")
    with pytest.raises(UserError, match="test_share"):
        read(path, test_share=0)
    (tmp_path / "o.csv").write_text("a,b,kind\n1,2,0\n")
    FRAME.assign(kind=7).to_csv(tmp_path / "seven.csv", index=False)
    for other, complaint in (("o.csv", "same columns"), ("seven.csv", "does not occur")):
        with pytest.raises(UserError, match=complaint):
            read(path, test=tmp_path / other)


def test_a_pickle_in_a_numpy_file_is_not_opened(tmp_path):
    np.save(tmp_path / "t.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="NumPy"):
        read(tmp_path / "t.npy")


# -- ratings ------------------------------------------------------------------------------------------------


def test_ratings_and_trust_are_read_with_and_without_names(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,stars,when\nann,tea,5,1\nbob,tea,2,1\nann,milk,3,2\n")
    (tmp_path / "bare.tsv").write_text("ann\ttea\t5\nbob\ttea\t2\nann\tmilk\t3\n")
    (tmp_path / "t.csv").write_text("ann,bob\ncid,ann\n")
    ratings = read_ratings(tmp_path / "r.csv", tmp_path / "t.csv", lowest=1, highest=5)
    assert ratings.user_labels.tolist() == ["ann", "bob", "cid"]
    assert ratings.item_labels.tolist() == ["milk", "tea"]
    assert list(zip(ratings.users, ratings.items, ratings.ratings, strict=True)) == [
        (0, 1, 5),
        (1, 1, 2),
        (0, 0, 3),
    ]
    assert list(zip(*ratings.trust_edges(), strict=True)) == [(0, 1), (2, 0)]
    assert (ratings.lowest, ratings.highest) == (1, 5)
    bare = read_ratings(tmp_path / "bare.tsv", tmp_path / "t.csv", directed=False)
    assert bare.users.tolist() == ratings.users.tolist()
    assert (bare.lowest, bare.highest) == (2, 5)
    assert list(zip(*bare.trust_edges(), strict=True)) == [(0, 1), (2, 0), (1, 0), (0, 2)]


def test_numbered_users_come_from_any_format(tmp_path):
    table = np.array([[7, 1, 4], [9, 2, 3], [7, 2, 1]])
    np.save(tmp_path / "r.npy", table)
    (tmp_path / "r.txt").write_text("7 1 4\n9 2 3\n7 2 1\n")
    (tmp_path / "t.txt").write_text("truster trustee\n7 9\n11 7\n")
    for name in ("r.npy", "r.txt"):
        ratings = read_ratings(tmp_path / name, tmp_path / "t.txt")
        assert ratings.user_labels.tolist() == [7, 9, 11]
        assert ratings.trusters.tolist() == [0, 2]
        assert ratings.ratings.tolist() == [4, 3, 1]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("u,i\n1,2\n", "expected at least 3"),
        ("u,i,r\n1,2,good\n", "not a number"),
        ("u,i,r\n1,2,\n", "not a number"),
        ("u,i,r\n1,2,3\n", "lowest < highest"),
        ("u,i,r\n1,2,3\n,2,4\n", "id that is missing"),
    ],
)
def test_wrong_ratings_are_one_sentence(tmp_path, content, complaint):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(UserError, match=complaint):
        read_ratings(tmp_path / "r.csv")


def test_ratings_outside_the_scale_are_named(tmp_path):
    (tmp_path / "r.csv").write_text("u,i,r\n1,2,3\n1,3,9\n")
    with pytest.raises(UserError, match="the rating 9, outside 1 to 5"):
        read_ratings(tmp_path / "r.csv", lowest=1, highest=5)
