"""A person's own files: every format gives the same data, and mistakes are one sentence."""

import contextlib
import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.datasets import load, read, read_ratings
from abex.errors import UserError
from tests.needs import DATA, real_data

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
@settings(max_examples=40)
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


CIAO = "userid,productid,categoryid,rating,helpfulness\n7,1,20,4,2\n9,2,20,3,5\n7,2,11,1,0\n"


@pytest.mark.parametrize(
    "content",
    [
        CIAO,
        "rating;when;movieId;userId\n4;1;1;7\n3;2;2;9\n1;3;2;7\n",
        "Product ID\tReviewer\tStars\n1\t7\t4\n2\t9\t3\n2\t7\t1\n",
        ",user_id,item_id,rating\n0,7,1,4\n1,9,2,3\n2,7,2,1\n",
        "who,what,rating\n7,1,4\n9,2,3\n7,2,1\n",
        "who,item,grade\n7,1,4\n9,2,3\n7,2,1\n",
        "user,item,rating,score\n7,1,4,40\n9,2,3,30\n7,2,1,10\n",
    ],
)
def test_names_decide_which_column_is_the_rating(tmp_path, content):
    (tmp_path / "r.csv").write_text(content)
    ratings = read_ratings(tmp_path / "r.csv")
    assert ratings.ratings.tolist() == [4, 3, 1]
    assert ratings.user_labels[ratings.users].tolist() == [7, 9, 7]
    assert ratings.item_labels[ratings.items].tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("1,2,3,4\n1,3,4,5\n", "has 4 columns without names: say which are user and item and rating"),
        ("a,b,c,d\n1,2,3,4\n", "no column that is clearly the user among a, b, c, d"),
        ("user,item,stars,score\n1,2,3,4\n", "several columns that may be the rating, stars, score"),
        ("user,movie,product,rating\n1,2,3,4\n", "several columns that may be the item, movie, product"),
        ("rating,a,b\n1,2,3\n", "no column that is clearly the user"),
        ("user,item,when,points\n1,2,3,4\n", "no column that is clearly the rating"),
        ("ann,tea,\nbob,tea,3\nbob,milk,4\n", "no column that is clearly the user"),
    ],
)
def test_a_doubt_about_the_columns_is_an_error_that_columns_settles(tmp_path, content, complaint):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(UserError, match=complaint) as caught:
        read_ratings(tmp_path / "r.csv")
    assert "columns=(0, 1, 2)" in str(caught.value)
    assert len(str(caught.value).replace(str(tmp_path), "")) < 200


def test_a_person_says_which_columns_are_meant(tmp_path):
    (tmp_path / "r.csv").write_text(CIAO)
    (tmp_path / "t.csv").write_text("when,who,whom\n1,7,9\n2,11,7\n")
    (tmp_path / "back.csv").write_text("trustee,truster\n9,7\n7,11\n")
    told = {"columns": ("userid", 1, "helpfulness"), "trust_columns": (1, 2)}
    ratings = read_ratings(tmp_path / "r.csv", tmp_path / "t.csv", **told)
    assert ratings.ratings.tolist() == [2, 5, 0]
    for trust, asked in (("t.csv", (1, 2)), ("back.csv", None)):
        ratings = read_ratings(tmp_path / "r.csv", tmp_path / trust, trust_columns=asked)
        assert ratings.user_labels[ratings.trusters].tolist() == [7, 11]
        assert ratings.user_labels[ratings.trustees].tolist() == [9, 7]
    with pytest.raises(UserError, match="no column that is clearly the truster"):
        read_ratings(tmp_path / "r.csv", tmp_path / "t.csv")
    for wrong, complaint in [
        (("userid", "productid", "ratin"), r"no column 'ratin' \(did you mean 'rating'\?\)"),
        ((0, 1, 9), "no column 9"),
        ((0, 1), "3 names or positions"),
        ("rating", "3 names or positions"),
        ((0, 1, 1), "must be different"),
    ]:
        with pytest.raises(UserError, match=complaint):
            read_ratings(tmp_path / "r.csv", columns=wrong)


def test_matlab_files_are_read(tmp_path):
    rows = np.array([[7, 1, 20, 4, 2], [9, 2, 20, 3, 5], [7, 2, 11, 1, 0]], dtype=float)
    trust = np.array([[7, 9], [11, 7]], dtype=np.uint16)
    scipy.io.savemat(tmp_path / "rating.mat", {"rating": rows}, do_compression=True)
    scipy.io.savemat(tmp_path / "three.mat", {"anything": rows[:, [0, 1, 3]]})
    scipy.io.savemat(tmp_path / "both.mat", {"rating": rows, "trustnetwork": trust})
    table = scipy.sparse.coo_array((rows[:, 3], rows[:, :2].astype(int).T), shape=(12, 3))
    scipy.io.savemat(tmp_path / "table.mat", {"R": scipy.sparse.csc_array(table)})
    links = scipy.sparse.coo_array(([1.0, 1.0], trust.T.astype(int)), shape=(12, 12))
    scipy.io.savemat(tmp_path / "links.mat", {"trust": scipy.sparse.csc_array(links)})
    for ratings_file in ("rating.mat", "three.mat", "both.mat", "table.mat"):
        for trust_file in ("both.mat", "links.mat"):
            ratings = read_ratings(tmp_path / ratings_file, tmp_path / trust_file)
            found = zip(
                ratings.user_labels[ratings.users],
                ratings.item_labels[ratings.items],
                ratings.ratings,
                strict=True,
            )
            assert sorted(found) == [(7, 1, 4), (7, 2, 1), (9, 2, 3)], ratings_file
            pairs = zip(*(ratings.user_labels[end] for end in ratings.trust_edges()), strict=True)
            assert sorted(pairs) == [(7, 9), (11, 7)], trust_file
    assert read_ratings(tmp_path / "rating.mat", columns=(0, 1, 4)).ratings.tolist() == [2, 5, 0]


def test_matlab_files_that_leave_a_doubt_or_are_damaged_are_one_sentence(tmp_path):
    def complaint(content, match):
        path = tmp_path / "r.mat"
        path.write_bytes(content) if isinstance(content, bytes) else scipy.io.savemat(path, content)
        with pytest.raises(UserError, match=match) as caught:
            read_ratings(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value).replace(str(tmp_path), "")) < 200

    rows = np.array([[7, 1, 4, 1500000000], [9, 2, 3, 1500000001]], dtype=float)
    complaint({"rating": rows}, "4 columns without names")  # a time in the fourth column
    complaint(
        {"rating": np.array([[7, 1, 4, 2], [9, 2, 3, 1]])}, "4 columns without names"
    )  # either may be it
    complaint({"a": rows[:, :3], "b": rows[:, :3]}, "one matrix called 'rating', it has a, b")
    complaint({"rating": {"user": rows}}, "matrix of numbers with at least 3 columns")
    complaint({"rating": "words"}, "matrix of numbers")
    complaint({}, "matrix of numbers")
    scipy.io.savemat(tmp_path / "good.mat", {"rating": rows}, do_compression=True)
    good = (tmp_path / "good.mat").read_bytes()
    complaint(b"", "MATLAB|damaged")
    complaint(b"\x89HDF\r\n\x1a\n" + b"\0" * 600, "MATLAB|damaged")
    newer = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\0" * 400
    complaint(newer, "save it with -v7")
    for cut in range(1, len(good), 7):
        complaint(good[:cut], "MATLAB|damaged|matrix of numbers")
    for place in range(128, len(good), 5):  # one byte of the contents is wrong
        broken = bytearray(good)
        broken[place] ^= 0xFF
        (tmp_path / "r.mat").write_bytes(bytes(broken))
        with contextlib.suppress(UserError):
            read_ratings(tmp_path / "r.mat")


def test_a_classifier_is_not_trained_on_a_matlab_file(tmp_path):
    scipy.io.savemat(tmp_path / "t.mat", {"X": np.eye(3)})
    with pytest.raises(UserError, match="a table is needed"):
        read(tmp_path / "t.mat")


@real_data("epinions/rating.mat")
def test_the_files_of_epinions_are_read_as_ones_own(monkeypatch):
    monkeypatch.setenv("ABEX_DATA", str(DATA))
    own = read_ratings(DATA / "epinions" / "rating.mat", DATA / "epinions" / "trustnetwork.mat")
    ours = load("epinions")
    for name in ("users", "items", "ratings", "trusters", "trustees", "user_labels", "item_labels"):
        assert np.array_equal(getattr(own, name), getattr(ours, name)), name
