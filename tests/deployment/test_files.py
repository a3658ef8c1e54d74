"""What is deployed with: the programs that read these files accept them."""

import base64
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SECRETS = {"POSTGRES_PASSWORD": "s3cret", "SECRET_KEY": "k3y", "ALLOWED_HOSTS": "board.example"}
OURS = {"migrate", "web", "scheduler", "cluster", "worker"}
UNITS = ("bandstand-web.service", "bandstand-scheduler.service")


def program(name):
    """The path of a program; without it a test is skipped, and fails where all are required."""
    if found := shutil.which(name):
        return found
    if os.environ.get("REQUIRE_PROGRAMS") == "1":
        pytest.fail(f"REQUIRE_PROGRAMS=1, but there is no {name}")
    return pytest.skip(f"there is no {name}")


def composed(*arguments, **settings):
    command = [program("docker-compose"), "--file", str(ROOT / "docker-compose.yml"), *arguments, "config"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp"} | settings
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")


def test_compose_takes_the_file_with_all_its_profiles():
    said = composed("--profile", "https", "--profile", "cluster", **SECRETS)
    assert said.returncode == 0, said.stderr
    services = yaml.safe_load(said.stdout)["services"]
    assert set(services) == OURS | {"db", "caddy"}
    for name in OURS:
        one = services[name]
        assert (one["read_only"], one["cap_drop"], one["tmpfs"]) == (True, ["ALL"], ["/tmp"]), name
        assert one["security_opt"] == ["no-new-privileges:true"]
        published = [str(port) for port in one.get("ports", [])]
        assert all(port.startswith("127.0.0.1:") for port in published), name
    assert services["web"]["environment"]["BEHIND_PROXY"] == "on"
    after = services["web"]["depends_on"]
    assert after == {"migrate": {"condition": "service_completed_successfully"}}
    for name in ("cluster", "worker"):  # code runs there for whoever reaches it
        assert set(services[name]["networks"]) == {"cluster"}
        assert not {"DATABASE_URL", "SECRET_KEY"} & set(services[name].get("environment", {}))


def test_compose_asks_for_what_has_no_safe_default():
    for name in SECRETS:
        said = composed(**{key: value for key, value in SECRETS.items() if key != name})
        assert (said.returncode, "is missing in .env" in said.stderr) == (1, True), name


def test_the_image_is_made_by_the_scripts_that_are_tested_and_runs_as_nobody():
    runs = re.findall(r"^RUN (.*)$", DOCKERFILE, re.MULTILINE)
    assert runs == ["sh /src/deploy/build.sh /opt/bandstand", "sh /opt/system.sh"]
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert DOCKERFILE.index("USER") < DOCKERFILE.index("ENTRYPOINT")
    for script in ROOT.glob("deploy/*.sh"):
        subprocess.run(["sh", "-n", script], check=True)
    kept_out = (ROOT / ".dockerignore").read_text().split("\n")
    assert {".env", ".git"} <= set(kept_out)
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert bases == {"python:3.13-slim-trixie"}  # whose pg_dump is of PostgreSQL 17
    assert "image: postgres:17-trixie\n" in (ROOT / "docker-compose.yml").read_text()


def test_what_compose_is_told_stands_in_the_pattern():
    asked = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))
    told = set(re.findall(r"\b([A-Z_]+)=", (ROOT / "deploy" / "example.env").read_text()))
    assert asked - told == {"PORT", "LOG_LEVEL"}


def pattern():
    """The settings of the pattern, with the secrets that it leaves open; and what one without Docker adds."""
    text = (ROOT / "deploy" / "example.env").read_text()
    known = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    secret = {name: secrets.token_urlsafe(48) for name in ("SECRET_KEY", "POSTGRES_PASSWORD")}
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    without = dict(re.findall(r"^# .*\b(DATABASE_URL)=(\S+)$", text, re.MULTILINE))
    return known | secret | {"SIGNING_KEY": key}, without


def checked(settings):
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | settings
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_check_has_nothing_to_say_of_the_pattern_with_docker():
    settings, _ = pattern()
    services = yaml.safe_load(composed(**settings).stdout)["services"]
    for name in ("migrate", "web", "scheduler"):
        done = checked(services[name]["environment"])
        assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


def test_check_has_nothing_to_say_of_the_pattern_without_docker():
    settings, without = pattern()
    done = checked(settings | without)
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr
    done = checked({name: value for name, value in (settings | without).items() if name != "TLS_HEADER"})
    assert set(re.findall(r"security\.\w+", done.stderr)) == {"security.W004", "security.W008"}
    for warning in ("W004", "W008"):
        assert f"`security.{warning}`" in (ROOT / "docs" / "deployment.md").read_text()


def test_systemd_takes_the_units(tmp_path):
    analyze = program("systemd-analyze")
    entrypoint = ROOT / "deploy" / "entrypoint.sh"
    for name in UNITS:
        unit = (ROOT / "deploy" / "systemd" / name).read_text()
        (tmp_path / name).write_text(unit.replace("/opt/bandstand/bin/bandstand-entrypoint", str(entrypoint)))
    said = subprocess.run([analyze, "verify", *UNITS], cwd=tmp_path, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


def caddy_environment(home):
    """What Caddy is run with: one older than 2.6.4, as Debian's is, needs its own word for buffering."""
    version = subprocess.run([program("caddy"), "version"], capture_output=True, text=True, check=True).stdout
    is_old = tuple(map(int, re.findall(r"\d+", version)[:3])) < (2, 6, 4)
    own = {"BUFFERING": "buffer_requests"} if is_old else {}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "SITE_DOMAIN": "board.example"} | own


def test_caddy_takes_its_file(tmp_path):
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]
    environment = caddy_environment(tmp_path)
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert said.returncode == 0, said.stderr
    assert "Valid configuration" in said.stdout + said.stderr
