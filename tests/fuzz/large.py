"""Sound files that are large in memory: few bytes that stand for many, around the limit of what a file may take."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from abex.evaluation import Log, evaluate
from abex.lab.datasets import read
from abex.players.player_file import read_player, with_checksum
from abex.service.app import decoded
from abex.service.bodies import DecideManyBody, NewPlayer, RewardBody, RewardManyBody
from abex.support.files import read_text
from abex.support.reading import max_bytes
from tests.fuzz.damage import Rng, one
from tests.fuzz.outcomes import File, read_file, told
from tests.fuzz.players import saved

HEAD = "arm,probability,reward"
LINES = {  # of logs: header and row, in which # stands for its number
    "numbers": (HEAD, "1,0.5,1"),
    "long numbers": (HEAD, "1,0.50000000000000000000000000000001,1.0"),
    "words": (HEAD, "a,0.5,1"),
    "ids": (f"{HEAD},decision", "a,0.5,1,#"),
    "arms": (HEAD, "a#,0.5,1"),
    "context": (f"{HEAD},x,y,z", "1,.5,1,a,b,c"),
    "short lines": (f"{HEAD},x,y,z,u,v,w", "1,.5,1"),
    "nothing": (HEAD, ""),
    "side observations": (f"{HEAD},side", '1,.5,1,"[[1,1,1]]"'),
    "of a player": (f"{HEAD},observed,also", 'a,.5,1,"{""b"":1}","{""b"":1}"'),
}
EVENT = '{"_label_cost":0,"_label_probability":1,"_label_Action":1%s}'
EVENTS = ("", ',"EventId":"#"', ',"Timestamp":"#"', f',"a":[{"1," * 99}1]', f',"c":[{"{}," * 99}1]')
VALUES = ("[]", "{}", "0", "1.5", '"a"', '{"a":1}', "[[[[]]]]", "null")  # of JSON
SIZES = (0.05, 0.3, 0.9, 1.1, 4.0)  # times the limit


def repeated(line: str, size: float) -> str:
    """Lines that fill so many bytes."""
    count = int(size / (len(line) + 1 + 3 * line.count("#")))
    if "#" not in line:
        return (line + "\n") * count
    return "".join(f"{line}\n".replace("#", f"{number:x}") for number in range(count))


def logs(rng: Rng) -> Iterator[File]:
    """Logs of very many rows: CSV, dsjson and Parquet."""
    while True:
        size = float(one(rng, SIZES)) * max_bytes()
        kind = one(rng, ("csv", "csv", "dsjson", "parquet"))
        if kind == "csv":
            head, line = LINES[one(rng, tuple(LINES))]
            content = f"{head}\n{repeated(line, size)}".encode()
        elif kind == "dsjson":
            content = repeated(EVENT % one(rng, EVENTS), size).encode()
        else:
            content = parquet(one(rng, ("numbers", "words", "ids")), int(size / 24))
        packed = kind != "parquet" and rng.random() < 0.5
        yield File(f"log.{kind}" + ".gz" * packed, gzip.compress(content, 1, mtime=0) if packed else content)


def parquet(what: str, rows: int) -> bytes:
    """A log of so many rows."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {"arm": [0] * rows, "probability": [0.5] * rows, "reward": [1.0] * rows}
    if what == "words":
        columns["also"] = ["a word"] * rows
    elif what == "ids":
        columns["decision"] = [f"{number:x}" for number in range(rows)]
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def run_log(case: File) -> str:
    """As `abex evaluate` reads it."""

    def use(path: Path) -> None:
        assert evaluate(Log.read(path), "Uniform", estimators=["IPS"]).verdicts

    return read_file(case, use)


def tables(rng: Rng) -> Iterator[File]:
    """Tables of very many cells."""
    while True:
        size = float(one(rng, SIZES)) * max_bytes()
        line = one(
            rng, ("1,2,y\n3,4,z", "a,b,y\nb,c,z", "#,b,y\nb,c,z", "1.0000000000000000000001,2,y\n1,2,z", "1")
        )
        content = f"c,d,y\n{repeated(line, size)}".encode()
        packed = rng.random() < 0.5
        yield File("t.csv" + ".gz" * packed, gzip.compress(content, 1, mtime=0) if packed else content)


def run_table(case: File) -> str:
    """As a data set."""
    return read_file(case, lambda path: read(path, target="y"))


class Text(NamedTuple):
    """What is told as JSON."""

    kind: str
    text: str


def players(rng: Rng) -> Iterator[File]:
    """Player files in which a field is very many values."""
    while True:
        body = dict(saved("UCB1()", 3, "none"))
        field = one(rng, tuple(body))
        text = with_checksum(body | {field: "here"}, "abex-player", 1)
        value = one(rng, VALUES)
        many = f"[{','.join([value] * int(float(one(rng, SIZES)) * max_bytes() / (len(value) + 1)))}]"
        yield File("player.json", text.replace('"here"', many, 1).encode())


def run_player(case: File) -> str:
    """Its checksum is wrong: that is found out behind the values."""
    return read_file(case, lambda path: read_player(read_text(path, "player"), "the player", False))


REQUESTS = {
    "decisions": (DecideManyBody, '{"units": [%s]}', ("null", '"a"', '""', "0")),
    "rewards": (RewardManyBody, '{"rewards": [%s]}', ('{"decision":"a","reward":1}', "{}", "[]")),
    "side": (RewardBody, '{"decision":"a","reward":1,"also":{%s}}', ('"a":1', '"b":[]')),
    "arms": (NewPlayer, '{"name":"a","arms":[%s]}', ("0", '"a"', "[]")),
    "edges": (NewPlayer, '{"name":"a","arms":2,"edges":[%s]}', ("[0,1]", "[]", "0")),
}


def bodies(rng: Rng) -> Iterator[Text]:
    """Requests of as many bytes as the service takes, of as many values as these can be."""
    while True:
        kind = one(rng, tuple(REQUESTS))
        _, frame, values = REQUESTS[kind]
        value = one(rng, values)
        yield Text(kind, frame % ",".join([value] * (BODY // (len(value) + 1))))


BODY = 1 << 20  # bytes that a service takes unless it is told otherwise


def run_body(case: Text) -> str:
    """As the service decodes it."""
    decode = msgspec.json.Decoder(REQUESTS[case.kind][0]).decode
    return told(lambda: json.dumps(decoded(decode, case.text.encode()).__class__.__name__))
