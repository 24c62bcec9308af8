"""Real data are found where `$ABEX_DATA` says, else beside the repository; pages are opened in a browser where there is one."""

import os
import shutil
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("ABEX_DATA", str(BESIDE))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of data, without ABEX_DATA."""
    monkeypatch.setattr("abex.datasets.source_files.user_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("ABEX_DATA", raising=False)
    return tmp_path / "cache" / "data"


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: the page is not opened"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine: the page is not opened (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()
