"""NumPy files and saved curves: headers that lie, members that are missing, damaged bytes."""

from __future__ import annotations

import functools
import io
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from abex import Curves
from abex.environments import Table
from abex.support.reading import arrays_of
from tests.fuzz.damage import Rng, damaged, maybe_damaged, one
from tests.fuzz.outcomes import File, folder, read_file

SHAPES: tuple[Any, ...] = (
    (), (0,), (12,), (12, 4), (4, 12), (48,), (-1,), (2**62, 4), (10**30,), (10**9, 0), (1,) * 40, "x", (1.5,), (True,), None,
)  # fmt: skip
TYPES: tuple[Any, ...] = (
    "<f8", ">f8", "<i4", "|b1", "<f2", "<c16", "|O", "V0", "<U0", "<U2", "|S3", "<M8[s]", [("a", "<f8")],
    "(2,)<f8", "zz", 5, "|V8", "<f16",
)  # fmt: skip


def base(rng: Rng) -> np.ndarray:
    """An array such as a person keeps."""
    kind = int(rng.integers(6))
    numbers = rng.integers(0, 5, (12, 4)).astype(one(rng, ("<f8", "<i8", "<f4", "|u1", ">i4")))
    if kind == 0:
        return np.asarray(np.arange(12) % 3, dtype=one(rng, ("<i8", "<f8", "<U3", "|S2")))
    if kind == 1:
        numbers = numbers.astype(np.float64)
        numbers[int(rng.integers(12)), int(rng.integers(4))] = one(rng, (np.nan, np.inf, 1e300, -1e-300, 0.5))
    if kind == 2:
        return np.asfortranarray(numbers)
    return np.column_stack([numbers[:, :3], np.arange(12) % 3]).astype(numbers.dtype)


def npy_bytes(rng: Rng, array: np.ndarray) -> bytes:
    """The file of an array, whose header may say something else."""
    stream = io.BytesIO()
    lies = rng.random() < 0.4
    order = array.flags.fnc
    header: dict[str, Any] = {"descr": array.dtype.str, "fortran_order": bool(order), "shape": array.shape}
    if lies:
        key = one(rng, ("descr", "fortran_order", "shape", "shape", "more"))
        header[key] = one(
            rng, SHAPES if key == "shape" else TYPES if key == "descr" else (True, 1, "x", None)
        )
        if rng.random() < 0.1:
            del header["descr"]
    text = repr(header).encode() + b" " * int(rng.integers(0, 64)) + b"\n"
    version = one(rng, (1, 1, 1, 2, 3, 9))
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    stream.write(b"\x93NUMPY" + bytes([version, 0]) + size + text + array.tobytes("F" if order else "C"))
    return maybe_damaged(stream.getvalue(), rng, 0.3)


def npz_bytes(rng: Rng) -> bytes:
    """An archive of arrays; sizes, names and the archive itself may be wrong."""
    names = one(
        rng,
        (
            ("X", "y"),
            ("X", "y"),
            ("X_train", "y_train", "X_test", "y_test"),
            ("X",),
            ("a", "b"),
            ("y", "X", "X"),
        ),
    )
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # names that are there twice
        for name in names:
            array = np.arange(12) % 3 if name.startswith("y") and rng.random() < 0.8 else base(rng)
            packing = one(
                rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
            )
            ending = one(rng, (".npy", ".npy", ".npy", ".txt", ""))
            archive.writestr(name + ending, npy_bytes(rng, array), packing)
    return maybe_damaged(buffer.getvalue(), rng, 0.4)


def cases(rng: Rng) -> Iterator[File]:
    """Arrays for each reader of them."""
    while True:
        reader = one(rng, ("arrays", "arrays", "table"))
        if reader == "arrays":
            yield File("t.npz", npz_bytes(rng), (("as", reader),))
        else:
            yield File("t.npy", npy_bytes(rng, base(rng)), (("as", reader),))


def run(case: File) -> str:
    """Give the file to its reader."""
    reader = {"arrays": arrays_of, "table": Table}[dict(case.options)["as"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_file(case._replace(options=()), reader)


# -- curves ---------------------------------------------------------------------------------------------------


@functools.cache
def saved_curves() -> bytes:
    """A small file of curves."""
    curves = Curves(
        policies=("A", "B"), checkpoints=np.array([1, 2, 4]), regret=np.ones((2, 3, 3)), optimal_pulls=np.ones((2, 3, 3)),
        nanoseconds=np.ones((2, 3)), reports=({}, {}), about={"horizon": 4},
    )  # fmt: skip
    path = folder() / "curves.npz"
    curves.save(path)
    return path.read_bytes()


def curves(rng: Rng) -> Iterator[File]:
    """Saved curves with a member exchanged or damaged."""
    while True:
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(saved_curves())) as old, zipfile.ZipFile(buffer, "w") as new:
            victim = one(rng, old.namelist())
            for name in old.namelist():
                content = old.read(name)
                if name == victim:
                    content = one(rng, (damaged(content, rng), npy_bytes(rng, base(rng)), b""))
                new.writestr(name, content)
        yield File("c.npz", maybe_damaged(buffer.getvalue(), rng, 0.3))


def run_curves(case: File) -> str:
    """Load the curves and ask for their means."""

    def load(path: Any) -> None:
        loaded = Curves.load(path)
        for name in loaded.policies:
            loaded.mean(name)

    return read_file(case, load)
