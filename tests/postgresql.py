"""A PostgreSQL server of one's own: a cluster in a temporary folder, on loopback, stopped when the tests end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.waiting import PATIENCE, wait_until

PASSWORD = "sesame"
MISSING = "PostgreSQL is not installed (Debian: apt-get install postgresql)"


def binaries() -> Path | None:
    """The folder of the newest server installed; Debian does not put it on the path."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4].split(".")[0])
    )
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there else None


class Server:
    """A cluster with the user ``abex`` and a password; `stop` and `start` at will."""

    def __init__(self) -> None:
        folder = binaries()
        if folder is None:
            raise FileNotFoundError(MISSING)
        self._bin = folder
        self._user = (
            "postgres" if hasattr(os, "geteuid") and os.geteuid() == 0 else None
        )  # it refuses to be root
        self.folder = Path(tempfile.mkdtemp(prefix="abex-postgresql-"))
        if self._user:
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

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
