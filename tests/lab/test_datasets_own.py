"""A person's own files: every format gives the same data, and mistakes are one sentence."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.lab.datasets import load, read, read_ratings
from abex.support.errors import UserError
from tests.each import each

X = np.random.default_rng(0).integers(0, 9, (40, 3))
Y = np.arange(40) % 3
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": Y})


def write(path, frame=FRAME):
    """The same data under the format of the path's ending."""
    name = path.name
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".tsv"):
        frame.to_csv(path, index=False, sep="\t")
    elif name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False, sep=";").encode()))
    else:
        frame.to_parquet(path)
    return path


ENDINGS = [".csv", ".tsv", ".csv.gz", ".parquet"]


@each("ending", ENDINGS)
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


@each("ending", ENDINGS)
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
    assert data.feature_names == ("size", "colour=green", "colour=red")
    assert data.class_names == ("apple", "lime")
    assert read(path, target=1).checksum == data.checksum
    assert set(map(tuple, data.X_train.tolist())) == {(1.5, 0.0, 1.0), (0.5, 1.0, 0.0)}
    unknown = tmp_path / "u.csv"
    unknown.write_text("colour,fruit,size\nblue,lime,2\n")
    assert read(path, target="fruit", test=unknown).X_test.tolist() == [[2.0, 0.0, 0.0]]


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


@each(
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
        ("t.arff", "@relation x\n@data\n", "known endings.* or give a data frame"),
        ("t.svm", "1 1:1\n", "known endings.* or give a data frame"),
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
    with pytest.raises(UserError, match="has no column 9"):
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


def test_a_data_frame_is_read_as_its_file_is(tmp_path):
    import polars
    import pyarrow

    plain = read(write(tmp_path / "plain.csv"), seed=3)
    kinds = FRAME.astype({"a": "Int64", "b": "category", "c": "float32", "kind": "string"})
    for frame in (
        FRAME,
        kinds,
        FRAME.set_index(FRAME["a"] - 99),
        polars.DataFrame(FRAME),
        pyarrow.table(FRAME),
    ):
        data = read(frame, seed=3)
        assert data.checksum == plain.checksum
        assert (data.name, data.class_names) == ("data frame", plain.class_names)
    assert read(FRAME[:30], test=FRAME[30:]).X_test.tolist() == X[30:].tolist()
    blank = kinds.assign(a=kinds["a"].where(kinds["a"] > 2), kind="x")
    blank.loc[:9, "kind"] = "y"
    assert np.isnan(read(blank, missing=True).X_train[:, 0]).any()
    for frame, complaint in (
        (blank, "the data frame has a missing or infinite value in column 'a'"),
        (
            FRAME.assign(kind=kinds["kind"].where(kinds["a"] > 2)),
            "target of the data frame has a missing value",
        ),
        (FRAME.set_axis(["a", "a", "c", "kind"], axis=1), "two columns called 'a'"),
        (FRAME[:0], "no rows"),
        ([1, 2], "a file or a data frame"),
    ):
        with pytest.raises(UserError, match=complaint):
            read(frame)
    with pytest.raises(UserError, match="must have the same columns"):
        read(write(tmp_path / "t.csv"), test=FRAME.rename(columns={"a": "z"}))


# -- ratings --------------------------------------------------------------------------------------------------


def seen(ratings):
    """The ratings and the trust pairs by their labels."""
    people = ratings.user_labels
    rows = zip(people[ratings.users], ratings.item_labels[ratings.items], ratings.ratings, strict=True)
    return sorted(rows), sorted(zip(people[ratings.trusters], people[ratings.trustees], strict=True))


def test_ratings_and_trust_are_read_with_and_without_names(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating,when\nann,tea,5,1\nbob,tea,2,1\nann,milk,3,2\n")
    (tmp_path / "bare.tsv").write_text("ann\ttea\t5\nbob\ttea\t2\nann\tmilk\t3\n")
    (tmp_path / "t.csv").write_text("ann,bob\ncid,ann\n")
    ratings = read_ratings(tmp_path / "r.csv", tmp_path / "t.csv", lowest=0, highest=6)
    assert ratings.user_labels.tolist() == ["ann", "bob", "cid"]
    assert seen(ratings) == (
        [("ann", "milk", 3), ("ann", "tea", 5), ("bob", "tea", 2)],
        [("ann", "bob"), ("cid", "ann")],
    )
    assert (ratings.name, ratings.lowest, ratings.highest) == ("r", 0, 6)
    bare = read_ratings(tmp_path / "bare.tsv", tmp_path / "t.csv", directed=False)
    assert seen(bare)[0] == seen(ratings)[0]
    assert seen(bare)[1] == [("ann", "bob"), ("ann", "cid"), ("bob", "ann"), ("cid", "ann")]
    assert (bare.lowest, bare.highest) == (2, 5)


RATED = [(7, 1, 4), (7, 2, 1), (9, 2, 3)]


@each(
    ("rows", "pairs"),
    [
        ("7 1 4\n9 2 3\n7 2 1\n", "truster trustee\n7 9\n11 7\n"),
        ("rating;when;Item ID;user_id\n4;1;1;7\n3;2;2;9\n1;3;2;7\n", "trustee,truster\n9,7\n7,11\n"),
        (",userId,itemId,rating,2019,2020\n0,7,1,4,0,0\n1,9,2,3,0,0\n2,7,2,1,0,0\n", "7,9\n11,7\n"),
        ("who,what,grade\n7,1,4\n9,2,3\n7,2,1\n", "from,to\n7,9\n11,7\n"),
        ("who,item,stars\n7,1,4\n9,2,3\n7,2,1\n", '"truster","trustee"\n7,9\n11,7\n'),
    ],
)
def test_names_tell_the_columns_and_three_columns_stand_in_order(tmp_path, rows, pairs):
    (tmp_path / "r.txt").write_text(rows)
    (tmp_path / "t.txt").write_text(pairs)
    assert seen(read_ratings(tmp_path / "r.txt", tmp_path / "t.txt")) == (RATED, [(7, 9), (11, 7)])


def test_ratings_are_read_from_data_frames():
    rows = pd.DataFrame(RATED, columns=["user", "item", "rating"])
    trust = pd.DataFrame({"truster": [7, 11], "trustee": [9, 7]})
    large = rows.assign(user=rows["user"].astype("Int64") + 2**60)  # no float keeps these apart
    assert seen(read_ratings(rows, trust)) == (RATED, [(7, 9), (11, 7)])
    assert read_ratings(large).user_labels.tolist() == [2**60 + 7, 2**60 + 9]


@each(
    ("content", "complaint"),
    [
        ("user,item\n1,2\n", "has the columns user, item: say which are"),
        ("1,2,3,4\n1,3,4,5\n", "has the columns 0, 1, 2, 3: say which are"),
        (
            "userId,movieId,rating,timestamp\n1,2,3,4\n",
            "has the columns userId, movieId, rating, timestamp: say which are",
        ),
        ("item,person,rating\n1,2,3\n", "has the columns item, person, rating: say which are"),
        ("movie,user,stars\n1,2,3\n", "has the columns movie, user, stars: say which are"),
        ("user,item,rating,User Id\n1,2,3,4\n", "say which are user and item and rating"),
        ("ann,tea,\nbob,tea,3\nbob,milk,4\n", "say which are user and item and rating"),
        ("u,i,r\n1,2,good\n", "not a number"),
        ("u,i,r\n1,2,\n", "not a number"),
        ("u,i,r\n1,2,3\n", "lowest < highest"),
        ("u,i,r\n1,2,3\n,2,4\n", "id that is missing"),
        ("u,i,r\nann,2,3\n,2,4\n", "missing id"),
    ],
)
def test_doubts_about_the_columns_and_wrong_ratings_are_one_sentence(tmp_path, content, complaint):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(UserError, match=complaint) as caught:
        read_ratings(tmp_path / "r.csv")
    assert ("columns=(0, 1, 2)" in str(caught.value)) == ("say which" in str(caught.value))
    assert len(str(caught.value).replace(str(tmp_path), "")) < 200


def test_a_person_says_which_columns_are_meant(tmp_path):
    (tmp_path / "r.csv").write_text(
        "userid,productid,categoryid,rating,helpfulness\n7,1,20,4,2\n9,2,20,3,5\n7,2,11,1,0\n"
    )
    (tmp_path / "t.csv").write_text("when,who,whom\n1,7,9\n2,11,7\n")
    told = read_ratings(
        tmp_path / "r.csv", tmp_path / "t.csv", columns=("userid", 1, "rating"), trust_columns=(1, 2)
    )
    assert seen(told) == (RATED, [(7, 9), (11, 7)])
    with pytest.raises(UserError, match="has the columns when, who, whom: say which are truster and trustee"):
        read_ratings(tmp_path / "r.csv", tmp_path / "t.csv", columns=(0, 1, 3))
    for wrong, complaint in [
        (("userid", "productid", "ratin"), r"no column 'ratin' \(did you mean 'rating'\?\)"),
        ((0, 1, 9), "no column 9"),
        ((0, 1), "3 names or positions"),
        ("rating", "3 names or positions"),
        ((0, 1, 1), "must be different"),
        ((0, 1, 1.5), "no column 1.5"),
    ]:
        with pytest.raises(UserError, match=complaint):
            read_ratings(tmp_path / "r.csv", columns=wrong)
    with pytest.raises(UserError, match="the rating 4, outside 1 to 3"):
        read_ratings(tmp_path / "r.csv", columns=(0, 1, 3), lowest=1, highest=3)
