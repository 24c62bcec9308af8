"""The example of Flask, as it would be deployed: gunicorn with two workers, then a deploy that adds a banner."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENCE, wait_until

pytest.importorskip("flask")
pytest.importorskip("gunicorn")
ROOT = Path(__file__).parents[2]


class Deploy:
    """gunicorn with two workers on a free port, its log in a file."""

    def __init__(self, folder, banners):
        self.log = folder / f"{len(banners)}.log"
        environment = os.environ | {
            "BANNER_STORE": f"sqlite:///{folder}/banner.db", "BANNERS": ",".join(banners),
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        }  # fmt: skip
        words = [
            "-m",
            "gunicorn",
            "--workers",
            "2",
            "--bind",
            "127.0.0.1:0",
            "examples.flask_banner.app:create_app()",
        ]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([sys.executable, *words], env=environment, stderr=log, cwd=ROOT)
        self.address = wait_until(self.listens, self.process)

    def listens(self):
        found = re.search(r"Listening at: (\S+)", self.log.read_text())
        return found and found[1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


def visitor(deploy):
    return httpx.Client(base_url=deploy.address, timeout=PATIENCE)


def seen(client):
    """The link of the page, and its banner."""
    return re.search(r'href="(.*?)">the (\w+) banner', client.get("/").text).groups()


@pytest.mark.slow
def test_workers_share_a_player_and_a_deploy_adds_a_banner(tmp_path):
    with Deploy(tmp_path, ["red", "green"]) as deploy:
        ann, bob = visitor(deploy), visitor(deploy)
        shown = set()
        # a worker that has not heard of it yet, within a second at most, shows one that will be void
        wait_until(
            lambda: len(found := {seen(ann) for _ in range(20)}) == 1 and not shown.update(found),
            deploy.process,
        )
        ((link, _),) = shown
        seen(bob)
        assert ann.get(link).status_code == 302
        assert ann.get(link).status_code == 302  # twice: it counts once
        assert ann.get("/click/nobody").status_code == 302
        wait_until(lambda: sum(bob.get("/summary").json().values()) == 2, deploy.process)
    with Deploy(tmp_path, ["red", "green", "gold"]) as deploy:
        shown = visitor(deploy).get("/summary").json()
        assert shown.keys() == {"red", "green", "gold"}
        assert sum(shown.values()) == 2  # what was known is known
        banners = {seen(visitor(deploy))[1] for _ in range(30)}
        assert "gold" in banners
