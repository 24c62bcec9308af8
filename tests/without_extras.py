"""Programs that run as if some packages were not installed, each in a child of one process that has imported what takes long."""

import atexit
import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
INSTALL = r"pip install '\.\[(?P<extras>[\w,]+)\]'"  # as pages write it
#: what most programs import; nothing of abex, which looks at once what there is
HEAVY = ("numpy", "numba", "scipy.optimize", "scipy.sparse", "scipy.special", "pandas", "matplotlib.figure")


def extras_named_in(text):
    """The extras that a page tells to install."""
    return [extra for extras in re.findall(INSTALL, text) for extra in extras.split(",")]


def missing_without(extras):
    """The packages that none of these extras brings."""
    from abex.support.extras import EXTRA_OF, PACKAGES_OF

    return set(EXTRA_OF) - {package for extra in extras for package in PACKAGES_OF[extra]}


class NotInstalled:
    """A finder that finds none of these packages, before any other is asked."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide(packages):
    """From now on these packages are not there."""
    assert "abex" not in sys.modules, "abex has been imported and knows what there was"
    for name in list(sys.modules):
        if name.split(".")[0] in packages:
            del sys.modules[name]
    sys.meta_path.insert(0, NotInstalled(set(packages)))


@cache
def programs():
    """The process that makes a child for each program; it ends with the tests."""
    command = [sys.executable, "-m", "tests.without_extras"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def run_without(packages, code, *, check=True):
    """What Python says when these packages are not installed."""
    with tempfile.TemporaryDirectory() as folder:
        request = {"packages": sorted(packages), "code": code, "folder": folder}
        parent = programs()
        parent.stdin.write(json.dumps(request) + "\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        said = [(Path(folder) / name).read_text() for name in ("stdout", "stderr")]
    done = subprocess.CompletedProcess("a program", code, *said)
    assert not check or code == 0, done.stderr
    return done


def serve():
    """Make a child for each request, a line of JSON, and tell its exit code; returns the request in the child alone."""
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    answers = os.dup(1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(answers)
            signal.alarm(int(PATIENCE))
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(Path(request["folder"]) / name, os.O_WRONLY | os.O_CREAT), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            return request
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(answers, f"{code}\n".encode())
    return None


if __name__ == "__main__":
    if (program := serve()) is not None:
        hide(program["packages"])
        exec(compile(program["code"], "code", "exec"), {"__name__": "code"})
