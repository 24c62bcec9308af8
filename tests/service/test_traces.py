"""Spans of OpenTelemetry, in the process of a service that was set up for it."""

import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.instrumentation.asgi")
PROGRAM = """
import json, sys, tempfile
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient
from abex.service import Settings, create_app
from abex.service.run import traced

kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
app = traced(create_app(Settings(store=f"sqlite:///{tempfile.mkdtemp()}/shop.db")))
with TestClient(app, base_url="http://localhost") as client:
    client.post("/v1/players", json={"name": "home/banner", "arms": ["red", "green"]})
    client.post("/v1/players/home%2Fbanner/decisions")
    client.post("/v1/players/nobody/decisions")
spans = [(span.name, span.attributes) for span in kept.get_finished_spans()]
print(json.dumps([[name, about["http.route"], about["http.status_code"]] for name, about in spans]))
"""


def test_a_request_is_one_span_named_by_its_route():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    decisions = "/v1/players/{name}/decisions"
    assert done.stdout.strip() == str([
        ["POST /v1/players", "/v1/players", 201], [f"POST {decisions}", decisions, 200], [f"POST {decisions}", decisions, 404],
    ]).replace("'", '"')  # fmt: skip


def test_a_process_without_it_is_left_as_it_is(monkeypatch):
    from abex.service.run import traced

    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace", raising=False)
    app = object()
    assert traced(app) is app
