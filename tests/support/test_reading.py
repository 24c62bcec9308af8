"""Files of others: what they may grow to is limited, and whatever is wrong with them is one short sentence."""

import gzip
import io
import itertools
import tracemalloc
import zipfile
import zlib

import numpy as np
import pandas as pd  # noqa: F401 - imported here, so that its own memory is not counted below
import pytest
import sklearn.datasets  # noqa: F401

from abex import Curves, Graph
from abex.cli import main
from abex.environments import Table
from abex.lab.datasets import read, read_ratings
from abex.lab.experiments import read_experiment
from abex.lab.sweeps.problems import bandit_problem, with_checksums
from abex.support.errors import UserError, brief
from abex.support.reading import array_of, arrays_of, max_bytes, reader_errors, short_path
from abex.support.table_files import read_columns
from tests.each import each

LITTLE = 10**6


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setenv("ABEX_MAX_BYTES", str(LITTLE))


def refused(function, *arguments, match="", **options):
    """The one sentence, which is short, names the file and costs little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=match) as refusal:
            function(*arguments, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(refusal.value)
    assert len(text) < 200, text
    assert "\n" not in text
    assert peak < 30 * LITTLE, f"{peak:,} bytes for: {text}"
    return text


def npy(array, **changes):
    """An .npy file, with a header that may lie."""
    stream = io.BytesIO()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **changes}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


def test_the_limit_is_a_share_of_memory_unless_it_is_given(monkeypatch):
    monkeypatch.delenv("ABEX_MAX_BYTES", raising=False)
    assert max_bytes() > 10**7
    monkeypatch.setenv("ABEX_MAX_BYTES", "5e6")
    assert max_bytes() == 5_000_000
    for wrong in ("lots", "-1", "0", "nan", "1.5"):
        monkeypatch.setenv("ABEX_MAX_BYTES", wrong)
        with pytest.raises(UserError, match="ABEX_MAX_BYTES"):
            max_bytes()


def test_what_is_packed_may_not_grow_without_end(tmp_path, little):
    packed = gzip.compress(b"1 2\n" * 12_500_000, 1)  # 50 MB
    for name, reader in (
        ("a.csv.gz", read),
        ("a.txt.gz", read_ratings),
        ("a.edges.gz", Graph.read),
    ):
        (tmp_path / name).write_bytes(packed)
        refused(reader, tmp_path / name, match="grows beyond 1.0 MB.*ABEX_MAX_BYTES")


def test_a_file_that_never_ends_is_read_up_to_the_limit(little):
    refused(Graph.read, "/dev/zero", match="grows beyond")


def test_packed_arrays_may_not_grow_without_end(tmp_path, little):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, X=np.zeros((5_000, 1_000)), y=np.zeros(5_000))
    refused(arrays_of, path, match="grows beyond")
    refused(Curves.load, path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", bytes(1_000_000))
    refused(arrays_of, path, match="packed in a way")


def test_one_long_word_does_not_widen_all_others(tmp_path, little):
    path = tmp_path / "t.csv"
    path.write_text("w,y\n" + "a,x\nb,y\n" * 5_000 + "c" * 100_000 + ",x\n")
    data = read(path)
    assert data.X_train.shape[1] == 3
    path.write_text("w,y\n" + "1,x\n2,y\n" * 5_000 + "3," + "x" * 100_000 + "\n")
    assert read(path).n_classes == 3
    refused(read_ratings, _ratings(path, "u" * 100_000), match="the ids of")
    edges = tmp_path / "words.edges"
    edges.write_text("a b\n" * 5_000 + "c" * 100_000 + " d\n")
    refused(Graph.read, edges, ids="words", match="the ids of")


def _ratings(path, word):
    path.write_text("user,item,rating\n" + "ann,tea,5\nbob,tea,2\n" * 5_000 + f"{word},tea,1\n")
    return path


def test_a_column_for_each_word_is_limited(tmp_path, little):
    path = tmp_path / "t.csv"
    path.write_text("w,y\n" + "".join(f"w{k},{k % 2}\n" for k in range(900)))
    refused(read, path, match="with a column for each word would take")


def test_a_wide_first_line_does_not_widen_short_ones_without_end(tmp_path, little):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{k}" for k in range(1_000)) + "\n" + "1\n" * 1_000)
    refused(read, path, match="t.csv would take")
    path.write_text("," * 1_000_001 + "\n1\n")
    refused(read, path, match="t.csv")


def test_a_word_that_a_parquet_file_repeats_is_held_once(tmp_path, little):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    words = pa.DictionaryArray.from_arrays(np.arange(4000) % 2, ["a" * 50_000, "b"])
    parquet.write_table(pa.table({"w": words, "y": np.arange(4000) % 2}), path)
    assert read(path).X_train.shape == (3000, 2)
    parquet.write_table(pa.table({"w": np.zeros(200_000), "y": np.arange(200_000) % 2}), path)
    refused(read, path, match="200,000 rows and 2 columns would take")
    parquet.write_table(pa.table({"w": [[1, 2], [3]], "y": [0, 1]}), path)
    refused(read, path, match="lists or records in column 'w'")


@pytest.mark.parametrize("content", [
    "w,x,y\n" + "1,0.5,3\n" * 9 + "a,2,\n" + "1,1,4\n" * 9,  # words and gaps come late
    "w,x,y\n" + "1,True,a\n" * 9 + "2.5,yes,b\n" + "1,False,a\n" * 9,
    "w,x,y\n" + "007,,1\n" * 9 + "x,,2.5\n",
])  # fmt: skip
def test_a_table_in_pieces_is_the_table_as_a_whole(tmp_path, monkeypatch, content):
    path = tmp_path / "t.csv"
    path.write_text(content)
    whole = read_columns(path)
    monkeypatch.setattr("abex.support.table_files.CELLS", 6)
    pieces = read_columns(path)
    assert list(pieces) == list(whole)
    for name, values in whole.items():
        assert pieces[name].dtype == values.dtype
        assert str(pieces[name].tolist()) == str(values.tolist())


def test_a_word_of_many_rows_is_held_once(tmp_path):
    (tmp_path / "t.csv").write_text("w,y\n" + "a long word,1\n" * 100)
    words = read_columns(tmp_path / "t.csv")["w"]
    assert len(set(map(id, words))) == 1


LIES = (
    npy(np.zeros(3), shape=(10**12,)), npy(np.zeros(3), shape=(-1,)), npy(np.zeros(3), shape=(10**30, 2)),
    npy(np.zeros(3), shape=(2**62, 4)), npy(np.zeros(2), descr="|O"), npy(np.zeros(2), descr="V0"),
    npy(np.zeros(2), descr="<U0", shape=(10**15,)), npy(np.zeros(2), descr=[("a", "<f8")]),
    npy(np.zeros(2), descr="<M8[s]"), npy(np.full(8, 255, np.uint8), descr="<U2", shape=(1,)),
    b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00" + bytes(20), b"\x93NUMPY\x09\x09" + bytes(20),
    b"\x93NUMPY\x01\x00\xff\xff" + b"{" * 70_000, b"\x93NUMPY\x01\x00\x10\x00" + b"{'descr': 'zz'} \n",
    npy(np.frombuffer(b"\xff\xfe", np.uint8), descr="|S2", shape=(1,)), b"PK\x03\x04", b"\x80\x04N.",
)  # fmt: skip


def test_headers_of_numpy_files_that_lie_are_refused(tmp_path):
    path, archive_path = tmp_path / "x.npy", tmp_path / "x.npz"
    for content in LIES:
        refused(array_of, content, "x.npy", match=r"x\.npy")
        path.write_bytes(content)
        refused(Table, path, match="reward table")
        with zipfile.ZipFile(archive_path, "w") as archive:
            archive.writestr("X.npy", content)
            archive.writestr("y.npy", content)
        refused(arrays_of, archive_path, match=r"x\.npz")


def test_every_plain_array_is_read_as_numpy_does():
    for dtype, order in itertools.product(
        ("<f8", ">f8", "<i2", ">u4", "|b1", "<f2", "<U3", ">U3", "|S3"), "CF"
    ):
        array = np.asarray(np.arange(12).reshape(3, 4).astype(dtype), order=order)
        stream = io.BytesIO()
        np.save(stream, array)
        mine = array_of(stream.getvalue(), "x.npy")
        assert np.array_equal(mine, array.astype(str) if dtype == "|S3" else array), (dtype, order)
        assert mine.dtype.isnative
        assert mine.flags.writeable


def test_damaged_files_are_one_sentence(tmp_path):
    for name, content in (
        ("t.csv", b'"' + b"a,b\n" * 50), ("t.csv", b"\xff\xfe\x00"), ("t.csv", b"a,y\n" + b"\x00" * 50),
        ("t.parquet", b"PAR1PAR1"), ("t.parquet", b"PAR1" + b"\xff" * 60 + b"PAR1"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        refused(read, tmp_path / name, match=r"t\.(csv|svm|parquet|npz)")


def test_classes_that_are_no_numbers_of_64_bits_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    for number in ("1e300", "18446744073709551615", "inf", "9007199254740993.0"):
        path.write_text("a,y\n" + f"1,{number}\n2,1\n" * 6)
        refused(read, path, match="must be classes")


def test_every_exception_of_a_reader_is_one_sentence():
    for error in (
        ValueError("a\nb"), StopIteration(), RecursionError("deep"), KeyError("x"), OSError(5, "e"), MemoryError(),
        SystemError("s"), zlib.error("z"), UnicodeDecodeError("u", b"x", 0, 1, "r"), ValueError("x" * 10_000), AssertionError(),
        ZeroDivisionError("0"),
    ):  # fmt: skip
        with (
            pytest.raises(UserError, match=r"cannot read x\.csv as a table: ") as refusal,
            reader_errors("read x.csv as a table"),
        ):
            raise error
        assert len(str(refusal.value)) < 200
        assert "\n" not in str(refusal.value)


def test_long_paths_and_values_are_cut():
    assert len(short_path("/" + "x" * 4000 + "/t.csv")) == 80
    assert short_path("/a/t.csv") == "/a/t.csv"
    assert brief("a\x00b\ud800c\nd") == "a b c d"


# -- experiments ----------------------------------------------------------------------------------------------

GOOD = """
name = "mine"
policies = ["UCB1", "Thompson"]
horizon = 100
[problem]
environment = {name = "Bernoulli", means = [0.9, 0.1]}
"""


def test_a_good_experiment_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert read_experiment(path).length == 100


@each(
    ("old", "new", "complaint"),
    [
        ("horizon = 100", "horizon = 100\nvalidation_seeds = 1e12", "validation_seeds"),
        ("horizon = 100", f"horizon = {10**400}", "horizon"),
        ("horizon = 100", "horizon = 1e400", "horizon"),
        ("horizon = 100", "horizon = nan", "horizon"),
        ("horizon = 100", "horizon = 100\ncheckpoints = 1e9", "checkpoints"),
        ("horizon = 100", f"horizon = 100\nseed = {10**400}", "seed"),
        ("horizon = 100", "horizon = 100\nseeds = 1e9", "seeds"),
        ("horizon = 100", "horizon = " + "9" * 5000, "TOML"),
        ("horizon = 100", "horizon = 100\nx = " + "[" * 100_000, "TOML"),
        ("horizon = 100", "horizon = 100\n#" + "x" * 2_000_000, "too long"),
        ('{name = "Bernoulli", means = [0.9, 0.1]}', "5", "environment must be a table"),
        ('{name = "Bernoulli", means = [0.9, 0.1]}', '{name = "Bernoulli", means = [1979-05-27]}', "plain JSON values"),
        ('{name = "Bernoulli", means = [0.9, 0.1]}', '{name = ["Bernoulli"]}', "environment.name"),
        ('{name = "Bernoulli", means = [0.9, 0.1]}', f'{{name = "SpecialArm", K = {10**400}}}', "K must be"),
        ('{name = "Bernoulli", means = [0.9, 0.1]}', f'{{name = "Bernoulli", means = [{10**400}]}}', "means"),
        ("environment =", "graph = {name = 7}\nenvironment =", "graph.name must be a text"),
        ("environment =", "graph = {name = 'star', n = 1e12}\nenvironment =", "n must be"),
        ("environment =", "graph = {name = 'star', n = 2, z = 1}\nenvironment =", "no parameter 'z'"),
        ("environment =", "recommendation = [1]\nenvironment =", "recommendation must be a table"),
        ("environment =", "recommendation = {name='synthetic', zz=1}\nenvironment =", "no parameter 'zz'"),
        ("environment =", "recommendation = {name='synthetic', dimension=1e9}\nenvironment =", "dimension"),
        ("environment =", "data = [1]\nenvironment =", "no key 'data'"),
        ("environment =", "x = {a=" + "[" * 30 + "]" * 30 + "}\nenvironment =", "no key 'x'"),
        ("means = [0.9, 0.1]", "means = " + "[" * 30 + "]" * 30, "means must be a non-empty list of numbers"),
    ],
)  # fmt: skip
def test_numbers_kinds_and_nesting_of_an_experiment_are_limited(tmp_path, old, new, complaint):
    path = tmp_path / "mine.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    refused(read_experiment, path, match=complaint)


@each(
    ("problem", "complaint"),
    [
        ("data = [1]", "data must be a text"),
        ("data = 'digits'\nrows = 3", "no key 'rows'"),
        ("data = 'digits'\npart = 7", "part must be a text"),
        ("part = 'test'", "needs data"),
        ("environment = {name = 'Bernoulli', means = [0.5]}", "no key 'environment'"),
    ],
)
def test_unknown_keys_of_a_boosting_problem_are_refused(tmp_path, problem, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(
        f'name = "mine"\nkind = "boosting"\npolicies = ["UCB1"]\niterations = 10\n[problem]\n{problem}\n'
    )
    refused(read_experiment, path, match=complaint)
    path.write_text(
        'name = "mine"\nkind = "boosting"\npolicies = ["UCB1"]\niterations = 10\n[problem]\ndata = "digits"\n'
        f"[validation]\n{problem}\n"
    )
    if complaint != "needs data":
        refused(read_experiment, path, match=complaint)


def test_problems_from_python_are_checked_too():
    for wrong in (
        {"environment": 5},
        {"recommendation": [1]},
        {"graph": {"name": 7}, "environment": {"name": "Table"}},
    ):
        refused(bandit_problem, wrong)
    refused(with_checksums, {"data": [1]})


def test_the_command_line_says_it_in_one_line(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace("horizon = 100", "horizon = 1\nx = " + "[" * 100_000))
    with pytest.raises(SystemExit) as stop:
        main(["run", str(path)])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Traceback" not in error
