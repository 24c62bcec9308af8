"""Downloads against a server on this machine: mirrors, retries, resuming, and nothing half in the cache."""

import gzip
import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from abex.cli import main
from abex.datasets import download, registry, storage, synthetic_ratings
from abex.datasets.catalogue import Remote, SourceFile
from abex.datasets.dataset import checksum_of
from abex.datasets.download import import_from, obtain
from abex.datasets.storage import load_arrays
from abex.errors import UserError
from tests.test_datasets import TABLE, toy

CONTENT = b"1 2\n3 4\n"
LONG = b"".join(b"%d %d\n" % (k, k * k) for k in range(50_000))


class Server(ThreadingHTTPServer):
    """Serves bytes by path; ``trouble`` makes the next answers go wrong."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.trouble, self.asked, self.ranges = {}, [], [], True

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        trouble = server.trouble.pop(0) if server.trouble else None
        asked = self.headers.get("Range")
        server.asked.append((self.path, asked))
        content = server.files.get(self.path.lstrip("/"))
        if content is None or isinstance(trouble, int):
            self.send_error(trouble or 404)
            return
        start = 0
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if trouble == "break":
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("ABEX_DATA", raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setattr(download, "QUIET", -1.0)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    return tmp_path / "cache" / "data"


def everything_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def entry_at(*urls, file="toy.txt", packed=None, **options):
    entry = toy(**options)
    part = SourceFile("toy.txt", entry.parts[0].sha256, (Remote(file, urls, packed),))
    return type(entry)(**{**vars(entry), "parts": (part,)})


def test_a_file_is_fetched_checked_and_kept(server, cache):
    server.files["toy.txt.gz"] = gzip.compress(CONTENT)
    packed = hashlib.sha256(server.files["toy.txt.gz"]).hexdigest()
    entry = entry_at(
        server.url("toy.txt.gz"), file="toy.txt.gz", packed=packed, checksum=checksum_of([TABLE])
    )
    assert np.array_equal(load_arrays(entry, obtain)["table"], TABLE)
    assert np.array_equal(load_arrays(entry, obtain)["table"], TABLE)
    assert len(server.asked) == 1
    assert everything_in(cache) == [f"parsed/toy-{entry.checksum[:16]}-1.npz", "toy/toy.txt.gz"]


def test_mirrors_are_tried_when_the_first_address_fails(server, cache):
    server.files["mirror/toy.txt"] = CONTENT
    obtain(entry_at(server.url("gone/toy.txt"), server.url("mirror/toy.txt")))
    assert everything_in(cache) == ["toy/toy.txt"]
    assert [path for path, _ in server.asked] == ["/gone/toy.txt", "/mirror/toy.txt"]


def test_a_wrong_copy_is_thrown_away_and_the_next_mirror_used(server, cache):
    server.files["bad/toy.txt"] = b"<html>welcome to the hotel</html>"
    server.files["good/toy.txt"] = CONTENT
    right = hashlib.sha256(CONTENT).hexdigest()
    urls = [server.url("bad/toy.txt"), server.url("good/toy.txt")]
    obtain(entry_at(*urls, packed=right))
    assert (cache / "toy" / "toy.txt").read_bytes() == CONTENT
    (cache / "toy" / "toy.txt").unlink()
    obtain(entry_at(*urls, sha256=right))  # the bytes of the packed file unknown, those of its content known
    assert (cache / "toy" / "toy.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("known", ["packed", "sha256", "checksum"])
def test_a_wrong_file_everywhere_leaves_nothing_behind(server, cache, known):
    server.files["toy.txt"] = b"1 2\n3 5\n"
    right = hashlib.sha256(CONTENT).hexdigest()
    options = {known: checksum_of([TABLE]) if known == "checksum" else right}
    with pytest.raises(UserError, match=r"SHA-256|checksum"):
        obtain(entry_at(server.url("toy.txt"), **options))
    assert everything_in(cache) == []


def test_a_broken_connection_is_resumed_where_it_stopped(server, cache):
    server.files["toy.txt"] = LONG
    server.trouble = ["break", "break"]
    obtain(entry_at(server.url("toy.txt"), packed=hashlib.sha256(LONG).hexdigest()))
    assert (cache / "toy" / "toy.txt").read_bytes() == LONG
    starts = [int(asked.removeprefix("bytes=").rstrip("-")) for _, asked in server.asked[1:]]
    assert starts == sorted(starts)
    assert starts[0] == len(LONG) // 2


def test_what_a_killed_process_left_is_used_by_the_next(server, cache):
    server.files["toy.txt"] = LONG
    entry = entry_at(server.url("toy.txt"), packed=hashlib.sha256(LONG).hexdigest())
    server.trouble = ["break"] * download.ATTEMPTS
    with pytest.raises(UserError, match="the connection broke"):
        obtain(entry)
    (partial,) = everything_in(cache)  # to be resumed, under a name that no loader looks for
    assert partial.startswith("partial/")
    obtain(entry)
    assert server.asked[-1][1] is not None
    assert everything_in(cache) == ["toy/toy.txt"]


def test_a_rest_of_another_file_is_noticed_and_fetched_anew(server, cache):
    server.files["toy.txt"] = LONG
    url = server.url("toy.txt")
    entry = entry_at(url, packed=hashlib.sha256(LONG).hexdigest())
    for rest in (b"something else" * 100, LONG + b"longer than upstream's"):
        download.claim("toy.txt", url).write_bytes(rest)
        obtain(entry)
        assert everything_in(cache) == ["toy/toy.txt"]
        assert (cache / "toy" / "toy.txt").read_bytes() == LONG
        (cache / "toy" / "toy.txt").unlink()


def test_a_server_that_cannot_resume_sends_all_again(server, cache):
    server.files["toy.txt"], server.ranges, server.trouble = LONG, False, ["break"]
    obtain(entry_at(server.url("toy.txt"), packed=hashlib.sha256(LONG).hexdigest()))
    assert (cache / "toy" / "toy.txt").read_bytes() == LONG


def test_errors_of_the_server_are_retried_but_not_missing_files(server, cache):
    server.files["toy.txt"] = CONTENT
    server.trouble = [503, 503]
    obtain(entry_at(server.url("toy.txt")))
    assert len(server.asked) == 3
    (cache / "toy" / "toy.txt").unlink()
    with pytest.raises(UserError, match="HTTP 404"):
        obtain(entry_at(server.url("none.txt")))
    assert len(server.asked) == 4


def test_an_archive_is_fetched_once_for_all_its_parts(server, cache):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in ("data/toy.txt", "data/other.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(CONTENT)
            tar.addfile(member, io.BytesIO(CONTENT))
    server.files["all.tar.gz"] = stream.getvalue()
    remote = Remote("all.tar.gz", (server.url("all.tar.gz"),))
    entry = toy()
    parts = (SourceFile("toy.txt", None, (remote,)), SourceFile("other.txt", None, (remote,)))
    obtain(type(entry)(**{**vars(entry), "parts": parts}))
    assert len(server.asked) == 1
    assert everything_in(cache) == ["toy/all.tar.gz"]


def test_without_network_one_sentence_says_which_file_goes_where(cache, tmp_path, monkeypatch):
    entry = entry_at("http://127.0.0.1:9/data/toy.txt")
    with pytest.raises(UserError) as caught:
        obtain(entry)
    message = str(caught.value)
    assert "put toy.txt from http://127.0.0.1:9/data into" in message
    assert str(cache / "toy") in message
    assert "ABEX_DATA" in message
    assert "\n" not in message
    assert everything_in(cache) == []


def test_files_a_person_has_are_checked_and_imported(cache, tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    entry = toy(checksum=checksum_of([TABLE]))
    with pytest.raises(UserError, match=r"has no toy\.txt, which toy needs"):
        import_from(entry, folder)
    (folder / "toy.txt.gz").write_bytes(gzip.compress(b"9 9\n"))
    with pytest.raises(UserError, match="checksum"):
        import_from(entry, folder)
    assert not cache.exists()
    (folder / "toy.txt.gz").write_bytes(gzip.compress(CONTENT))
    import_from(entry, folder)
    assert everything_in(cache) == ["toy/toy.txt.gz"]


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
        code = main(list(arguments))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code or 0, captured.out, captured.err


def test_the_command_fetches_checks_and_tells(server, cache, registered, capsys):
    server.files["toy.txt"] = CONTENT
    registered(entry_at(server.url("toy.txt"), checksum=checksum_of([TABLE])))
    assert "missing" in run(capsys, "data")[1]
    assert run(capsys, "data", "fetch", "toy")[1].startswith("toy: fetched and checked")
    assert "already in" in run(capsys, "data", "fetch", "all")[1]
    assert "verified" in run(capsys, "data")[1]
    assert "verified" in run(capsys, "data", "check")[1]
    assert server.url("toy.txt") in run(capsys, "data", "show", "toy")[1]
    (cache / "toy" / "toy.txt").write_text("1 2\n3 5\n")
    code, out, err = run(capsys, "data", "check")
    assert code == 2
    assert "damaged" in out
    assert err.startswith("abex: toy: ")


def test_the_command_compares_models_on_a_persons_own_ratings(cache, capsys, tmp_path):
    ratings = synthetic_ratings(60, 50, ratings_per_user=20, seed=1)
    rows = zip(ratings.users, ratings.items, ratings.ratings, strict=True)
    (tmp_path / "stars.csv").write_text("user,item,stars\n" + "".join(f"{u},{i},{r:g}\n" for u, i, r in rows))
    pairs = zip(ratings.trusters, ratings.trustees, strict=True)
    (tmp_path / "trust.csv").write_text("".join(f"{u},{v}\n" for u, v in pairs))
    files_given = (str(tmp_path / "stars.csv"), "--trust", str(tmp_path / "trust.csv"))
    code, out, _ = run(capsys, "data", "rmse", *files_given, "--more-than", "3", "--seeds", "1")
    assert code == 0
    for method in ("mean of the user", "mean of the item", "matrix factorisation", "SocialMF"):
        assert method in out
    code, _, err = run(capsys, "data", "rmse", *files_given, "--more-than", "300")
    assert code == 2
    assert "lower more_than" in err
    code, _, err = run(capsys, "data", "rmse", *files_given, "--columns", "user,1,star", "--more-than", "300")
    assert code == 2
    assert "no column 'star' (did you mean 'stars'?)" in err
    code, _, err = run(
        capsys, "data", "rmse", *files_given, "--columns", "user,1,stars", "--more-than", "300"
    )
    assert "lower more_than" in err


def test_the_commands_mistakes_are_one_sentence_and_exit_2(cache, registered, capsys, tmp_path):
    registered(entry_at("http://127.0.0.1:9/toy.txt"))
    for arguments in (
        ("data", "fetch", "toi"),
        ("data", "fetch", "toy"),
        ("data", "fetch", "toy", "--from", str(tmp_path / "nowhere")),
        ("data", "show", "tay"),
        ("data", "check", "tay"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert err.startswith("abex: ")
        assert err.count("\n") == 1
