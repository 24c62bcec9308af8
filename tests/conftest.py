"""Pages are opened in a browser where there is one; the last lines of a run say what took long and what was not tested."""

import shutil

import pytest
from hypothesis import HealthCheck, settings

from tests.budget import JUDGED, Cost, Meter, told
from tests.needs import BROWSER, not_tested
from tests.waiting import PATIENCE

# what is compiled at the first example takes seconds, and on a busy machine so does anything
settings.register_profile("abex", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("abex")


class Browser:
    """Opens pages that wait as long as the machine takes."""

    def __init__(self, running):
        self.running = running

    def new_context(self, **options):
        context = self.running.new_context(**options)
        context.set_default_timeout(1000 * PATIENCE)
        return context


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of data, without ABEX_DATA."""
    monkeypatch.setattr("abex.lab.datasets.source_files.user_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("ABEX_DATA", raising=False)
    return tmp_path / "cache" / "data"


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip(BROWSER)
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=1000 * PATIENCE
        )
        yield Browser(running)
        running.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Notes what a test costs, where the process that tells it will find that."""
    with Meter() as meter:
        result = yield
    slow = item.get_closest_marker("slow") is not None
    item.user_properties.append(("cost", (meter.seconds, meter.compiled, slow)))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """The last words: what took long, and what was not tested."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return result
    costs = [
        Cost(report.nodeid, *dict(report.user_properties)["cost"])
        for report in reporter.stats.get("passed", ())
        if report.when == "call" and "cost" in dict(report.user_properties)
    ]
    if JUDGED:
        for line in told(costs):
            reporter.write_line(line)
        if any(cost.is_too_much for cost in costs) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if skipped := reporter.stats.get("skipped"):
        reporter.write_line(not_tested(report.longrepr[2].removeprefix("Skipped: ") for report in skipped))
    return result
