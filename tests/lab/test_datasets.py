"""The published data sets: their values, packed and damaged files, checksums, and what is kept of them."""

import gzip
import hashlib
import io
import shutil
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex.lab.datasets import load, names, registry, source_files
from abex.lab.datasets.paper_sets import Reader
from abex.lab.datasets.registry import (
    CatalogueEntry,
    arrays_for,
    check,
    contents_of,
    look,
    parse,
)
from abex.lab.datasets.source_files import SourceFile, place_of, uncompress, unpacked
from abex.lab.datasets.types import smallest
from abex.support.errors import UserError
from abex.support.files import checksum_of
from tests.each import each
from tests.naive.lzw import compress
from tests.needs import DATA, real_data

needs_data = real_data("isolet")

CONTENT = b"1 2\n3 4\n"
TABLE = np.array([[1.0, 2.0], [3.0, 4.0]])
RIGHT = checksum_of([TABLE])


def toy(*urls, sha256=None, checksum=None, files=("toy.txt",)):
    """An entry whose first file is a table of two columns."""
    return CatalogueEntry(
        name="toy",
        folder="toy",
        parts=tuple(SourceFile(name, sha256, urls or ("http://127.0.0.1:9/data/toy.txt",)) for name in files),
        reader=Reader(
            lambda contents: {"table": np.loadtxt(io.BytesIO(contents["toy.txt"]), ndmin=2)},
            lambda entry, arrays: arrays,
        ),
        checksum=checksum,
    )


def put(folder, name="toy.txt", content=CONTENT):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


# -- values ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-300, 70_000), min_size=1, max_size=20))
def test_the_smallest_type_keeps_every_number(values):
    array = np.array(values, dtype=np.float64)
    small = smallest(array)
    assert np.array_equal(small.astype(np.float64), array)
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        limits = np.iinfo(kind)
        assert (
            np.dtype(kind).itemsize >= small.itemsize or array.min() < limits.min or array.max() > limits.max
        )


def test_checksums_see_type_shape_and_values():
    sums = {
        checksum_of([np.array(values, dtype=kind)])
        for values, kind in [([1, 2], "u1"), ([1, 2], "u2"), ([[1, 2]], "u1"), ([2, 1], "u1")]
    }
    assert len(sums) == 4
    assert checksum_of([np.arange(3, dtype=">i4")]) == checksum_of([np.arange(3, dtype="<i4")])


# -- packed files ---------------------------------------------------------------------------------------------


@given(
    st.binary(max_size=400) | st.lists(st.sampled_from(b"ab"), max_size=3000).map(bytes),
    st.integers(10, 12),
    st.booleans(),
)
@settings(max_examples=60)
def test_compressed_files_come_back(content, widest, clears):
    assert uncompress(compress(content, widest, clears), "x.Z") == content


@pytest.mark.skipif(shutil.which("gzip") is None, reason="needs gzip (Debian: apt-get install gzip)")
def test_the_slow_compressor_writes_what_gzip_reads():
    content = b"-0.2080, 0.3480, 0.3280, 1.\n" * 300 + bytes(range(256)) * 9 + b"x" * 200_000
    for widest in (10, 12, 16):
        packed = compress(content, widest)
        unpacked_by_gzip = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)
        assert unpacked_by_gzip.stdout == content == uncompress(packed, "x.Z")


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(*entries):
    """A packed tar of (name, content); a text is where a link leads."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


PACKED = {
    "toy.txt": CONTENT,
    "toy.txt.gz": gzip.compress(CONTENT),
    "toy.txt.Z": compress(CONTENT),
    "all.zip": zipped(**{"data/other.txt": b"x", "data/toy.txt": CONTENT}),
    "all+Z.zip": zipped(**{"data/toy.txt.Z": compress(CONTENT)}),
    "all.tar.gz": tarred(("data/other.txt", b"x"), ("data/toy.txt", CONTENT)),
}


def test_a_file_is_found_plain_packed_and_inside_an_archive(tmp_path):
    for name, content in PACKED.items():
        entry = toy(f"http://127.0.0.1:9/{name.replace('+', '%2B')}")
        put(tmp_path / name / "a", name, content)
        put(tmp_path / name / "b" / "toy", name, content)
        for folder in ("a", "b"):
            there = contents_of(entry, [tmp_path / name / folder])
            assert np.array_equal(parse(entry, there)["table"], TABLE)


def test_damaged_files_and_archives_without_the_file_are_one_sentence():
    for packed, content in (
        ("toy.txt.gz", gzip.compress(CONTENT * 99)[:-12]), ("toy.txt.Z", b""), ("toy.txt.Z", b"\x1f\x8b\x08"),
        ("toy.txt.Z", b"\x1f\x9d\x85ab"), ("toy.txt.Z", b"\x1f\x9d\x90\xff\xff\xff\xff"), ("all.zip", b"<html>not found</html>"),
        ("all.tar.gz", b"<html>"), ("all.tar.gz", gzip.compress(b"no tar")), ("all.zip", zipped(other=b"")),
        ("all.tar.gz", tarred(("toy.txt", "/etc/hostname"))),
        ("all.tar.gz", tarred(("other.txt", CONTENT), ("toy.txt", "other.txt"))),
    ):  # fmt: skip
        with pytest.raises(UserError, match="there/") as caught:
            unpacked(content, packed, "toy.txt", f"there/{packed}")
        assert "\n" not in str(caught.value)


def test_nothing_unpacks_without_end(monkeypatch):
    monkeypatch.setattr(source_files, "MAX_BYTES", 10**6)
    content = bytes(1_200_000)
    for name, packed in (
        ("toy.txt.gz", gzip.compress(content)),
        ("all.zip", zipped(**{"toy.txt": content})),
        ("all.tar.gz", tarred(("toy.txt", content))),
        ("toy.txt.Z", compress(content)),
    ):
        with pytest.raises(UserError, match="grows beyond"):
            unpacked(packed, name, "toy.txt", name)


# -- looking for files, checksums, what was parsed ------------------------------------------------------------


def test_abex_data_goes_before_the_cache(cache, tmp_path, monkeypatch):
    put(cache / "toy")
    assert place_of(toy().parts[0], "toy") == cache / "toy" / "toy.txt"
    put(tmp_path / "mine")
    monkeypatch.setenv("ABEX_DATA", str(tmp_path / "mine"))
    assert place_of(toy().parts[0], "toy") == tmp_path / "mine" / "toy.txt"


def test_a_wrong_file_is_refused_and_leaves_nothing_behind(cache):
    put(cache / "toy", content=b"1 2\n3 5\n")
    for entry, match in (
        (toy(sha256=hashlib.sha256(CONTENT).hexdigest()), "SHA-256"),
        (toy(checksum=RIGHT), f"{cache / 'toy'} hold other values"),
    ):
        with pytest.raises(UserError, match=match):
            arrays_for(entry)
        assert check(entry).status == check(entry, quick=True).status == "damaged"
    put(cache / "toy", content=b"<html>")
    with pytest.raises(UserError, match="cannot read the files of toy"):
        arrays_for(toy())
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["toy.txt"]


def test_a_cache_that_cannot_be_written_does_not_stop_loading(cache, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setenv("ABEX_DATA", str(tmp_path))
    put(tmp_path)
    assert np.array_equal(arrays_for(toy(checksum=RIGHT))["table"], TABLE)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="did you mean 'mnist'"):
        load("mnits")
    with pytest.raises(UserError, match="takes no options"):
        load("digits", target="x")


def test_every_entry_can_be_proved_and_says_where_it_comes_from():
    for entry in registry.entries().values():
        assert entry.citation
        assert entry.licence
        assert entry.description
        assert entry.checksum or entry.name in ("facebook-107", "facebook-698", "facebook-1912")
        for part in entry.parts:
            assert part.urls
            assert all(place.startswith(("https://", "http://yann")) for place in part.urls)
            assert part.sha256 or part.name.endswith(".edges") or entry.name in ("usps", "facebook-combined")


# -- the real files -------------------------------------------------------------------------------------------


@pytest.fixture
def real(cache, monkeypatch):
    monkeypatch.setenv("ABEX_DATA", str(DATA))
    return cache


def test_digits_are_always_there(cache):
    from sklearn.datasets import load_digits

    data = load("digits")
    assert checksum_of(data.arrays().values()) == registry.entry_of("digits").checksum
    together = np.concatenate([data.X_train, data.X_test])
    assert sorted(map(bytes, together)) == sorted(map(bytes, load_digits().data.astype(np.uint8)))


PUBLISHED = {  # rows for training and for the test, features, classes
    "mnist": (60_000, 10_000, 784, 10),
    "usps": (7_291, 2_007, 256, 10),
    "letter": (16_000, 4_000, 16, 26),
    "pendigits": (7_494, 3_498, 16, 10),
    "isolet": (6_238, 1_559, 617, 26),
}
COUNTS = {  # of the classes, for training and for the test
    "usps": (
        [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
        [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
    ),
    "pendigits": (
        [780, 779, 780, 719, 780, 720, 720, 778, 719, 719],
        [363, 364, 364, 336, 364, 335, 336, 364, 336, 336],
    ),
}


@needs_data
@each("name", names())
def test_the_values_are_the_registered_ones(real, name):
    entry = registry.entry_of(name)
    if look(entry).status == "missing":
        assert entry.checksum is None
        return
    data, again = load(name), load(name)  # whoever parses compares the checksum
    assert repr(data) == repr(again)
    for key, value in vars(data).items():
        assert np.array_equal(value, getattr(again, key)), key
    if name in PUBLISHED:
        assert (data.y_train.size, data.y_test.size, data.n_features, data.n_classes) == PUBLISHED[name]
        assert data.X_train.shape[1] == data.X_test.shape[1] == len(data.feature_names)
        counts = tuple(np.bincount(y).tolist() for y in (data.y_train, data.y_test))
        assert {len(half) for half in counts} == {data.n_classes}
        assert counts == COUNTS.get(name, counts)


@needs_data
def test_files_are_checked_on_demand(real):
    for name in ("letter", "facebook-348", "epinions", "digits"):
        assert check(registry.entry_of(name)).status == "verified"


@needs_data
def test_the_facebook_networks(real):
    ego, combined = load("facebook-0"), load("facebook-combined")
    assert (ego.n_nodes, ego.sources.size) == (333, 2_519)
    assert (ego.sources < ego.targets).all()
    assert (ego.labels.min(), ego.labels.max()) == (1, 347)
    assert (combined.n_nodes, combined.sources.size) == (4_039, 88_234)
    friends = combined.targets[combined.sources == 0]
    inside = np.isin(combined.sources, friends) & np.isin(combined.targets, friends)
    assert inside.sum() == ego.sources.size  # the ego's network is what its friends share
