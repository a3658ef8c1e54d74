"""What is installed is told: why, in a bill of materials, and what is known against it."""

import json
import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.txt"
TOLD = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def named(requirements):
    return {NAME.match(one)[0].lower() for one in requirements}


def wanted():
    """Every library that pyproject.toml names, for whatever purpose."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], PYPROJECT["build-system"]["requires"]]
    lists += [*project["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    return set().union(*map(named, lists))


def locked():
    """Name and version of each pin, read without the tools that are tested."""
    return re.findall(r"^([a-z0-9._-]+)==(\S+)", LOCK.read_text(), re.MULTILINE)


def test_each_dependency_is_told_with_why():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TOLD, re.MULTILINE)
    told = [name.lower() for cell, _, _ in rows for one in cell.split(", ") if (name := NAME.match(one)[0])]
    told = [name for name in told if name != "library"]
    assert len(told) == len(set(told))
    assert set(told) == wanted()


@pytest.fixture(scope="module")
def bill(tmp_path_factory):
    file = tmp_path_factory.mktemp("bill") / "bandstand.cdx.json"
    made = subprocess.run(
        [sys.executable, "tools/sbom.py", "requirements.txt", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert f"{len(locked())} libraries of requirements.txt" in made.stdout
    return file.read_text()


def test_the_bill_of_materials_holds_what_is_locked(bill):
    found = json.loads(bill)
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "bandstand")
    assert sorted((one["name"], one["version"]) for one in found["components"]) == sorted(locked())
    by_ref = {one["bom-ref"]: one for one in found["components"]}
    assert all(one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}" for one in by_ref.values())
    hashes = [said["content"] for one in by_ref.values() for said in one["externalReferences"][0]["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]{64})", LOCK.read_text()))
    edges = {
        one["ref"]: {by_ref[ref]["name"] for ref in one.get("dependsOn", [])} for one in found["dependencies"]
    }
    extras = PYPROJECT["project"]["optional-dependencies"]
    own = named([*PYPROJECT["project"]["dependencies"], *extras["server"], *extras["embedded"]])
    assert edges["bandstand"] == own | ({"psycopg-binary"} & edges["bandstand"])
    reached, left = set(), ["bandstand"]
    while left:
        names = edges[left.pop()] - reached
        reached |= names
        left += [ref for ref, one in by_ref.items() if one["name"] in names]
    assert reached == {name for name, _ in locked()}
    django = next(one for one in by_ref.values() if one["name"] == "django")
    assert django["licenses"] == [{"license": {"id": "BSD-3-Clause"}}] or "BSD" in str(django["licenses"])


def test_the_bill_of_materials_keeps_its_schema(bill):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator  # a second to import, in every worker

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None


# ------------------------------------------------------------------------------------------ vulnerabilities


def audit(*arguments):
    ended = subprocess.run(
        [sys.executable, "tools/audit.py", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    return ended.returncode, ended.stdout, ended.stderr


class Answering(BaseHTTPRequestHandler):
    """Answers as OSV does; of what is asked about, nothing is known but of the named."""

    known: tuple[str, ...] = ()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        found = [
            {"vulns": [{"id": "PYSEC-1"}]} if one["package"]["name"] in self.known else {} for one in asked
        ]
        body = json.dumps({"results": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told):
        pass


@pytest.fixture
def database():
    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_audit_asks_the_service(database, monkeypatch):
    code, told, _ = audit("--address", database, "requirements.txt")
    assert (code, told) == (0, f"{len(locked())} versions of requirements.txt: no known vulnerabilities\n")
    monkeypatch.setattr(Answering, "known", ("django",))
    code, told, _ = audit("--address", database, "requirements.txt")
    (version,) = [version for name, version in locked() if name == "django"]
    assert code == 1
    assert f"django {version}: PYSEC-1" in told
    assert "1 known vulnerabilities" in told


def test_the_audit_says_that_it_could_not_ask():
    code, told, said = audit("--address", "http://127.0.0.1:9", "requirements.txt")
    assert (code, told) == (2, "")
    assert "could not be asked" in said
    assert "Nothing was checked." in said


def test_the_audit_reads_records_on_disk(tmp_path):
    (version,) = [version for name, version in locked() if name == "django"]
    empty = audit("--database", str(tmp_path), "requirements.txt")
    assert (empty[0], "holds no records" in empty[2]) == (2, True)
    for key, affected in {
        "GHSA-listed": {"versions": [version]},
        "GHSA-range": {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}]},
        "GHSA-last": {
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "2"}, {"last_affected": version}]}]
        },
        "GHSA-fixed": {
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": version}]}]
        },
        "GHSA-older": {
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "2"}]}]
        },
    }.items():
        record = {"id": key, "affected": [{"package": {"ecosystem": "PyPI", "name": "Django"}} | affected]}
        (tmp_path / f"{key}.json").write_text(json.dumps(record))
    withdrawn = {"id": "GHSA-gone", "withdrawn": "2026-01-01", "affected": [{"versions": [version]}]}
    (tmp_path / "gone.json").write_text(json.dumps(withdrawn))
    code, told, _ = audit("--database", str(tmp_path), "requirements.txt")
    assert code == 1
    assert set(re.findall(r"GHSA-\w+(?=,)", told)) == {"GHSA-listed", "GHSA-range", "GHSA-last"}
