"""Downloads from a server on this machine: mirrors, broken connections, and nothing wrong in the cache; `abex data`."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from abex.cli import main
from abex.lab.datasets import registry, source_files
from abex.lab.datasets.registry import arrays_for
from abex.support.errors import UserError
from tests.lab.test_datasets import CONTENT, RIGHT, TABLE, put, tarred, toy


class Server(ThreadingHTTPServer):
    """Serves bytes by path; a path in ``broken`` ends in the middle, one in ``garbled`` is no HTTP."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.broken, self.garbled, self.asked = {}, set(), set(), []

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.lstrip("/")
        self.server.asked.append(path)
        if path in self.server.garbled:
            self.wfile.write(b"no such protocol\r\n\r\n")
            return
        content = self.server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if path in self.server.broken else content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def everything_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_file_is_fetched_checked_and_kept(server, cache):
    server.files["toy.txt.gz"] = gzip.compress(CONTENT)
    entry = toy(server.url("toy.txt.gz"), checksum=RIGHT)
    for _ in range(2):
        assert np.array_equal(arrays_for(entry)["table"], TABLE)
    assert server.asked == ["toy.txt.gz"]
    assert everything_in(cache) == ["toy/toy.txt.gz"]


def test_the_first_address_whose_copy_is_whole_and_right_is_used(server, cache):
    addresses = ["gone/toy.txt", "hotel/toy.txt", "half/toy.txt", "good/toy.txt", "never/toy.txt"]
    server.files = {
        "hotel/toy.txt": b"<html>welcome</html>",
        "half/toy.txt": CONTENT,
        "good/toy.txt": CONTENT,
    }
    server.broken = {"half/toy.txt"}
    arrays_for(toy(*map(server.url, addresses), sha256=hashlib.sha256(CONTENT).hexdigest()))
    assert (cache / "toy" / "toy.txt").read_bytes() == CONTENT
    assert server.asked == addresses[:4]


@pytest.mark.parametrize("known", ["sha256", "checksum"])
def test_a_wrong_or_broken_file_everywhere_leaves_nothing_behind(server, cache, known):
    server.files["toy.txt"] = b"1 2\n3 5\n"
    entry = toy(
        server.url("toy.txt"),
        **{known: RIGHT if known == "checksum" else hashlib.sha256(CONTENT).hexdigest()},
    )
    with pytest.raises(UserError, match=r"SHA-256|checksum"):
        arrays_for(entry)
    server.broken = {"toy.txt"}
    with pytest.raises(UserError, match="the connection broke after 4 of 8 bytes"):
        arrays_for(entry)
    server.files.clear()
    with pytest.raises(UserError, match="HTTP 404"):
        arrays_for(entry)
    server.garbled = {"toy.txt"}
    with pytest.raises(UserError, match="no sound answer"):
        arrays_for(entry)
    assert everything_in(cache) == []


def test_an_answer_without_end_is_cut_off(server, cache, monkeypatch):
    monkeypatch.setattr(source_files, "MAX_BYTES", 10**6)
    server.files["toy.txt"] = bytes(3 * 10**6)
    with pytest.raises(UserError, match="is not the upstream file"):
        arrays_for(toy(server.url("toy.txt")))


def test_an_archive_is_fetched_once_for_all_its_files(server, cache):
    server.files["all.tar.gz"] = tarred(("data/toy.txt", CONTENT), ("data/other.txt", CONTENT))
    entry = toy(server.url("all.tar.gz"), files=("toy.txt", "other.txt"))
    for _ in range(2):
        arrays_for(entry)
    assert server.asked == ["all.tar.gz"]
    assert everything_in(cache) == ["toy/all.tar.gz"]


def test_without_network_one_sentence_says_which_file_goes_where(cache):
    with pytest.raises(UserError) as caught:
        arrays_for(toy())
    message = str(caught.value)
    assert "put toy.txt from http://127.0.0.1:9/data into" in message
    assert str(cache / "toy") in message
    assert "ABEX_DATA" in message
    assert "\n" not in message
    assert everything_in(cache) == []


# -- the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def registered(monkeypatch):
    """A registry with one small entry."""

    def register(entry):
        monkeypatch.setattr(registry, "entries", lambda: {"toy": entry})
        monkeypatch.setattr("abex.cli.data.entries", lambda: {"toy": entry})

    return register


def run(capsys, *arguments):
    """Exit code, output and errors of a command."""
    code = 0
    try:
        code = main(["data", *arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code or 0, captured.out, captured.err


def test_the_command_fetches_checks_and_tells(server, cache, registered, capsys):
    server.files["toy.txt"] = CONTENT
    registered(toy(server.url("toy.txt"), checksum=RIGHT))
    assert "missing" in run(capsys)[1]
    assert run(capsys, "fetch", "toy")[1].startswith("toy: fetched and checked")
    assert "already in" in run(capsys, "fetch", "all")[1]
    assert "verified" in run(capsys)[1]
    assert "verified" in run(capsys, "check")[1]
    assert server.url("toy.txt") in run(capsys, "show", "toy")[1]
    put(cache / "toy", content=b"1 2\n3 5\n")
    code, out, err = run(capsys, "check")
    assert code == 2
    assert "damaged" in out
    assert err.startswith("abex: toy: ")


def test_the_commands_mistakes_are_one_sentence_and_exit_2(cache, registered, capsys):
    registered(toy())
    for arguments in (
        ("fetch", "toi"),
        ("fetch", "toy"),
        ("show", "tay"),
        ("check", "tay"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert err.startswith("abex: ")
        assert err.count("\n") == 1
