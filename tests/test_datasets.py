"""Loaders: formats, damage, checksums, the cache, and the paper's table on the real files."""

import gzip
import hashlib
import io
import shutil
import struct
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.datasets import formats, load, names, registry, storage
from abex.datasets.catalogue import CatalogueEntry, Remote, SourceFile
from abex.datasets.classification import classes
from abex.datasets.dataset import Dataset, checksum_of, smallest
from abex.datasets.inventory import check, look
from abex.datasets.storage import find, load_arrays, parse, read_arrays
from abex.datasets.unpack import uncompress, unpack
from abex.errors import UserError
from tests.naive.lzw import compress
from tests.needs import DATA, real_data


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of data, without ABEX_DATA."""
    monkeypatch.setattr(storage, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("ABEX_DATA", raising=False)
    return tmp_path / "cache" / "data"


def idx_bytes(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def toy(content=b"1 2\n3 4\n", *, sha256=None, checksum=None, archive=None, urls=()):
    """An entry with one part, a table of two columns."""
    part = SourceFile("toy.txt", sha256, (Remote(archive or "toy.txt", urls),))
    return CatalogueEntry(
        name="toy",
        folder="toy",
        parts=(part,),
        read=lambda contents: {"table": formats.numbers(contents["toy.txt"], 2, "toy.txt")},
        build=lambda entry, arrays: arrays,
        checksum=checksum,
        rows="2",
        description="",
        brief="",
        citation="",
        licence="",
    )


TABLE = np.array([[1.0, 2.0], [3.0, 4.0]])


# -- formats ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_idx_files_come_back(shape, seed):
    array = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(formats.idx(idx_bytes(array), "file"), array)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00\x08",
        b"\x89PNG....",
        idx_bytes(np.zeros((3, 4), np.uint8))[:-1],
        b"\x00\x00\x08\x02\x00\x00",
    ],
    ids=["empty", "short", "bad magic", "truncated", "no sizes"],
)
def test_a_damaged_idx_file_is_one_clear_error(content):
    with pytest.raises(UserError, match=r"^images "):
        formats.idx(content, "images")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"1 2\n3\n", "table of numbers"),
        (b"1 2 3\n4 5 6\n", "3 columns, expected 2"),
        (b"1 x\n", "table of numbers"),
        (b"1 nan\n", "row 1"),
        (b"", "no rows"),
    ],
)
def test_a_wrong_table_of_numbers_is_refused(content, complaint):
    with pytest.raises(UserError, match=complaint):
        formats.numbers(content, 2, "table")


def test_letters_and_edges_are_parsed_and_checked():
    letters, table = formats.lettered(b"A,1,2\nZ,3,4\n", 3, "file")
    assert letters.tolist() == [0, 25]
    assert table.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(UserError, match="line 2"):
        formats.lettered(b"A,1,2\nz,3,4\n", 3, "file")
    assert formats.edges(b"# nodes\n1 2\n2 7\n", "file").tolist() == [[1, 2], [2, 7]]
    for wrong in (b"1 -2\n", b"1 2.5\n"):
        with pytest.raises(UserError, match="row 1"):
            formats.edges(wrong, "file")


def test_matlab_files_with_missing_or_wrong_matrices_are_refused():
    from scipy.io import savemat

    stream = io.BytesIO()
    savemat(stream, {"rating": np.arange(8).reshape(2, 4)})
    assert formats.matlab(stream.getvalue(), "rating", 4, "file").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(UserError, match="no matrix called 'trust'"):
        formats.matlab(stream.getvalue(), "trust", 2, "file")
    with pytest.raises(UserError, match="3 columns"):
        formats.matlab(stream.getvalue(), "rating", 3, "file")
    for damaged in (b"", b"not a mat file" * 20, stream.getvalue()[:-20]):
        with pytest.raises(UserError, match="file "):
            formats.matlab(damaged, "rating", 4, "file")


def test_labels_out_of_range_are_named():
    with pytest.raises(UserError, match="label 10 in row 2"):
        classes(np.array([1.0, 10.0]), 10, "file")


@given(st.lists(st.integers(-300, 70_000), min_size=1, max_size=20))
def test_the_smallest_type_keeps_every_number(values):
    array = np.array(values, dtype=np.float64)
    small = smallest(array)
    assert np.array_equal(small.astype(np.float64), array)
    others = [
        kind for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32) if np.dtype(kind) < small.dtype
    ]
    for kind in others:
        limits = np.iinfo(kind)
        assert (
            np.dtype(kind).itemsize == small.itemsize or array.min() < limits.min or array.max() > limits.max
        )


def test_checksums_see_type_shape_and_values():
    sums = {
        checksum_of([np.array(values, dtype=kind)])
        for values, kind in [([1, 2], "u1"), ([1, 2], "u2"), ([[1, 2]], "u1"), ([2, 1], "u1")]
    }
    assert len(sums) == 4
    assert checksum_of([np.arange(3, dtype=">i4")]) == checksum_of([np.arange(3, dtype="<i4")])


# -- packed files -------------------------------------------------------------------------------------------


@given(
    st.binary(max_size=400) | st.lists(st.sampled_from(b"ab"), max_size=3000).map(bytes),
    st.integers(10, 12),
    st.booleans(),
)
@settings(max_examples=60)
def test_compressed_files_come_back(content, widest, clears):
    assert uncompress(compress(content, widest, clears)) == content


def test_long_codes_and_many_bytes_come_back():
    content = np.random.default_rng(0).integers(0, 4, 60_000).astype(np.uint8).tobytes() + b"x" * 200_000
    assert uncompress(compress(content, 16)) == content


@pytest.mark.skipif(shutil.which("gzip") is None, reason="needs gzip (Debian: apt-get install gzip)")
def test_the_slow_compressor_writes_what_gzip_reads():
    content = b"-0.2080, 0.3480, 0.3280, 1.\n" * 300 + bytes(range(256)) * 9
    for widest in (10, 12, 16):
        packed = compress(content, widest)
        unpacked = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout
        assert unpacked == content == uncompress(packed)


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b\x08", b"\x1f\x9d\x85ab", b"\x1f\x9d\x90\xff\xff\xff\xff"], ids=repr
)
def test_a_damaged_z_file_is_one_clear_error(content):
    with pytest.raises(UserError, match=r"^the file "):
        uncompress(content)


def test_truncated_gzip_and_broken_archives_are_clear_errors(tmp_path):
    packed = tmp_path / "toy.txt.gz"
    packed.write_bytes(gzip.compress(b"1 2\n" * 100)[:-12])
    with pytest.raises(UserError, match="damaged"):
        unpack(packed)
    for name in ("a.zip", "a.tar.gz"):
        (tmp_path / name).write_bytes(b"<html>not found</html>")
        with pytest.raises(UserError, match="damaged"):
            unpack(tmp_path / name, "toy.txt")


@pytest.mark.parametrize("unsafe", ["../toy.txt", "/etc/toy.txt", "a/../../toy.txt", "..\\toy.txt"])
def test_archives_with_paths_that_lead_outside_are_refused(tmp_path, unsafe):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(unsafe, "1 2\n")
        archive.writestr("toy.txt", "1 2\n")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        for name in (unsafe, "toy.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = 4
            tar.addfile(entry, io.BytesIO(b"1 2\n"))
    for name in ("a.zip", "a.tar.gz"):
        with pytest.raises(UserError, match="unsafe name"):
            unpack(tmp_path / name, "toy.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "a.zip"]


def test_links_in_archives_are_not_followed(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("toy.txt")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(entry)
    with pytest.raises(UserError):
        unpack(tmp_path / "a.tar.gz", "toy.txt")


def test_a_part_is_found_plain_packed_and_inside_an_archive(tmp_path):
    entry = toy(archive="all.zip")
    content = b"1 2\n3 4\n"
    for name, packed in {
        "toy.txt": content,
        "toy.txt.gz": gzip.compress(content),
        "toy.txt.Z": compress(content),
    }.items():
        folder = tmp_path / name
        (folder / "toy").mkdir(parents=True)
        (folder / "toy" / name).write_bytes(packed)
        assert np.array_equal(parse(entry, [folder])["table"], TABLE)
    for inner, packed in {"data/toy.txt": content, "data/toy.txt.Z": compress(content)}.items():
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.writestr(inner, packed)
        assert np.array_equal(parse(entry, [tmp_path])["table"], TABLE)


# -- looking for files, checksums, the cache of parsed arrays -------------------------------------------------


def test_abex_data_goes_before_the_cache(cache, tmp_path, monkeypatch):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.txt").write_text("5 6\n")
    assert find(toy(), toy().parts[0]).path == cache / "toy" / "toy.txt"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "toy.txt").write_text("1 2\n")
    monkeypatch.setenv("ABEX_DATA", str(tmp_path / "mine"))
    assert find(toy(), toy().parts[0]).path == tmp_path / "mine" / "toy.txt"


def test_a_wrong_checksum_is_refused_and_leaves_nothing_behind(cache):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.txt").write_text("1 2\n3 5\n")
    right = hashlib.sha256(b"1 2\n3 4\n").hexdigest()
    with pytest.raises(UserError, match="SHA-256"):
        load_arrays(toy(sha256=right), lambda entry: None)
    with pytest.raises(UserError, match="checksum"):
        load_arrays(toy(checksum=checksum_of([TABLE])), lambda entry: None)
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["toy.txt"]
    assert check(toy(checksum=checksum_of([TABLE]))).status == "damaged"


def test_parsed_arrays_are_kept_and_a_damaged_copy_is_made_again(cache):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.txt").write_text("1 2\n3 4\n")
    entry = toy(checksum=checksum_of([TABLE]))
    assert np.array_equal(load_arrays(entry, lambda entry: None)["table"], TABLE)
    (kept,) = (cache / "parsed").iterdir()
    (cache / "toy" / "toy.txt").unlink()
    assert np.array_equal(
        load_arrays(entry, lambda entry: None)["table"], TABLE
    )  # the file is not needed any more
    (cache / "toy" / "toy.txt").write_text("1 2\n3 4\n")
    whole = kept.read_bytes()
    for damaged in (whole[:100], whole.replace(TABLE.tobytes(), TABLE[::-1].tobytes()), b""):
        kept.write_bytes(damaged)
        assert np.array_equal(load_arrays(entry, lambda entry: None)["table"], TABLE)
        assert np.array_equal(read_arrays(kept)["table"], TABLE)


def test_no_flipped_bit_of_a_parsed_copy_stops_loading(cache):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.txt").write_text("1 2\n3 4\n")
    entry = toy(checksum=checksum_of([TABLE]))
    load_arrays(entry, lambda entry: None)
    (kept,) = (cache / "parsed").iterdir()
    whole = kept.read_bytes()
    for place in range(len(whole)):
        for bit in (0, 1 + place % 7):
            kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            arrays = load_arrays(entry, lambda entry: None)
            assert np.array_equal(arrays["table"], TABLE)


def test_a_cache_that_cannot_be_written_does_not_stop_loading(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(storage, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.setenv("ABEX_DATA", str(tmp_path))
    (tmp_path / "toy.txt").write_text("1 2\n3 4\n")
    entry = toy(checksum=checksum_of([TABLE]))
    assert np.array_equal(load_arrays(entry, lambda entry: None)["table"], TABLE)


def test_digits_are_always_there_and_split_the_same(cache):
    first, second = load("digits"), load("digits")
    assert first.checksum == checksum_of(first.arrays().values()) == checksum_of(second.arrays().values())
    assert first.X_train.shape == (1200, 64)
    assert first.X_test.shape == (597, 64)
    together = np.concatenate([first.X_train, first.X_test])
    from sklearn.datasets import load_digits

    assert sorted(map(bytes, together)) == sorted(map(bytes, load_digits().data.astype(np.uint8)))


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="did you mean 'mnist'"):
        load("mnits")
    with pytest.raises(UserError, match="takes no options"):
        load("digits", target="x")


def test_every_entry_says_where_it_comes_from():
    for entry in registry.entries().values():
        assert entry.citation
        assert entry.licence
        assert entry.description
        for part in entry.parts:
            assert part.sha256 or entry.checksum or entry.folder == "facebook"
            for remote in part.remotes:
                assert remote.urls
                assert all(
                    url.endswith(remote.file.replace("1+2+3+4", "1%2B2%2B3%2B4")) for url in remote.urls
                )


# -- the real files -----------------------------------------------------------------------------------------

PAPER = {
    "mnist": (60_000, 10_000, 784, 10, np.uint8),
    "usps": (7_291, 2_007, 256, 10, np.float32),
    "letter": (16_000, 4_000, 16, 26, np.uint8),
    "pendigits": (7_494, 3_498, 16, 10, np.uint8),
    "isolet": (6_238, 1_559, 617, 26, np.float32),
}


@pytest.fixture
def real(cache, monkeypatch):
    monkeypatch.setenv("ABEX_DATA", str(DATA))
    return cache


@real_data("isolet")
@pytest.mark.parametrize("name", PAPER)
def test_the_papers_table(real, name):
    n_train, n_test, n_features, n_classes, kind = PAPER[name]
    first = load(name)
    assert isinstance(first, Dataset)
    assert first.X_train.shape == (n_train, n_features)
    assert first.X_test.shape == (n_test, n_features)
    assert first.y_train.shape == (n_train,)
    assert first.y_test.shape == (n_test,)
    assert first.n_classes == n_classes == np.unique(first.y_train).size == np.unique(first.y_test).size
    assert len(first.feature_names) == n_features
    assert first.X_train.dtype == first.X_test.dtype == kind
    again = load(name)
    assert (real / "parsed").is_dir()
    assert checksum_of(again.arrays().values()) == first.checksum


@real_data("isolet")
def test_class_counts_of_usps_and_pendigits_are_the_published_ones(real):
    usps, pen = load("usps"), load("pendigits")
    assert np.bincount(usps.y_train).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(usps.y_test).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert np.bincount(pen.y_test).tolist() == [363, 364, 364, 336, 364, 335, 336, 364, 336, 336]


@real_data("isolet")
def test_the_facebook_networks(real):
    ego = load("facebook-0")
    assert (ego.n_nodes, ego.sources.size) == (333, 2_519)
    assert (ego.sources < ego.targets).all()
    assert ego.labels.min() == 1
    assert ego.labels.max() == 347
    combined = load("facebook-combined")
    assert (combined.n_nodes, combined.sources.size) == (4_039, 88_234)
    friends = combined.targets[combined.sources == 0]
    inside = np.isin(combined.sources, friends) & np.isin(combined.targets, friends)
    assert inside.sum() == ego.sources.size  # the ego's network is what its friends share


@real_data("isolet")
def test_every_real_file_is_verified(real):
    states = {name: look(registry.entry_of(name)).status for name in names()}
    missing = {name for name, status in states.items() if status == "missing"}
    assert missing <= {"facebook-107", "facebook-698", "facebook-1912"}
    for name in ("letter", "facebook-348", "epinions"):
        assert check(registry.entry_of(name)).status == "verified"
