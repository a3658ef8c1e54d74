"""The documents: every line of shell and Python runs as it is printed, and what is public stands on a page.

A page is read in a folder of its own that looks like a checkout, with an embedded server of its own. What
installs or serves (`APART`) is tested in `tests.test_installation` and `tests.leaderboard.test_server`;
here gunicorn serves on another port than the printed 8000. The folder's server holds the demonstration.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.urls import URLPattern, get_resolver

from analytics.cli import main as analytics
from analytics.research.cli import main as research
from analytics.research.tuning.cli import main as tuning
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import EventKind
from selection.cli import main as selection
from tests.cluster import ROOT, copied_home
from tests.leaderboard.service import STAY, inherited, migrated_home
from tools import reference

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("reference/*.md"))]
RUN, SHOWN = {"sh", "python"}, {"csv", "json", "ndjson", "text", "yaml"}
APART = ("make ", "pip install ", "gunicorn ")
PRINTED_ADDRESS = "localhost:8000"
PATIENCE = 900
TELLS = {
    "README.md": ["28,500 new results", "499 of the 500 tasks asked for have no outcome"],
    "docs/formats.md": ["Read as swe-bench: model.run-1.json.", "0 new results, 3 already stored"],
    "docs/client.md": ["is accepted: 55 outcomes", "demonstration.parquet: 19,705 outcomes"],
    "docs/library.md": ['outcom: unknown column. Did you mean "outcome"?'],
    "docs/operator.md": ["→ zero", "2 new, 0 changed", "bst_"],
    "docs/tuning.md": ["search: 4 of 4", "Full evaluations, in new runs"],
    "docs/submitter.md": ['"status":"accepted"', '"n_outside":0,"assignment":{', '"mode":"staged"'],
}
"""What a page says that its lines lead to."""


def blocks(text):
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


# ------------------------------------------------------------------------------------------------ as printed


class Reader:
    """Types what a page shows, in order: variables of the shell and names of Python live to its end."""

    def __init__(self, folder, home, address):
        self.folder, self.address = folder, address
        self.environment = {
            "PATH": f"{folder}/bin:{sys.prefix}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "BANDSTAND_HOME": home,
            "OPENBLAS_NUM_THREADS": "1",
        } | {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}
        self.names, self.printed = {}, ""
        for entry in ("manage.py", "pyproject.toml", "analytics", "leaderboard", "selection"):
            (folder / entry).symlink_to(ROOT / entry)
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "bin").mkdir()
        (folder / "bin" / "bandstand-server").write_text(
            f'#!/bin/sh\nexec {sys.executable} {ROOT}/manage.py "$@"\n'
        )
        (folder / "bin" / "bandstand-server").chmod(0o755)
        (folder / "bin" / "bandstand").write_text(
            f'#!/bin/sh\nexec {sys.executable} {ROOT}/bandstand_client.py "$@"\n'
        )
        (folder / "bin" / "bandstand").chmod(0o755)

    def read(self, text):
        for language, block in blocks(text.replace(PRINTED_ADDRESS, self.address)):
            if language == "python":
                exec(compile(block, "a block of Python", "exec"), self.names)
            elif language == "sh":
                self.printed += self.type(
                    "".join(line for line in block.splitlines(True) if not line.startswith(APART))
                )

    def type(self, lines):
        variables = self.folder / "bin" / "variables"
        script = (
            f"set -aeuo pipefail\n[ ! -f {variables} ] || . {variables}\n{lines}\nexport -p > {variables}\n"
        )
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, f"{lines}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr

    def serve(self):
        command = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"]
        server = subprocess.Popen(
            [*command, "--bind", self.address], cwd=self.folder, env=self.environment, start_new_session=True
        )
        end = time.monotonic() + PATIENCE
        host, port = self.address.split(":")
        while time.monotonic() < end:
            with socket.socket() as connection:
                if connection.connect_ex((host, int(port))) == 0:
                    return server
            time.sleep(0.1)
        raise AssertionError(f"nothing listens at {self.address}")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    return Reader(tmp_path, str(tmp_path / "home"), address)


@pytest.fixture
def at_home(reader):
    """The reader, where the demonstration is stored."""
    home = copied_home("demonstration", demonstration, migrated_home)
    reader.environment["BANDSTAND_HOME"] = home
    yield reader
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def with_server(at_home):
    """The reader, where PostgreSQL stays between commands."""
    command = [sys.executable, "-c", STAY]
    stays = subprocess.Popen(command, cwd=ROOT, env=at_home.environment, stdin=subprocess.PIPE)
    yield at_home
    stays.communicate(timeout=PATIENCE)


def demonstration(home):
    """What `make demo EXAMPLE=simulated` makes."""
    subprocess.run(
        [sys.executable, "manage.py", "demo", "--example", "simulated"],
        cwd=ROOT,
        env=inherited() | {"BANDSTAND_HOME": home},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE,
    )


@pytest.fixture
def served(at_home):
    """The reader, while the demonstration is served."""
    server = at_home.serve()
    yield at_home
    os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C does
    server.wait(PATIENCE)


READ = [page for page in PAGES if RUN & {language for language, _ in blocks(page.read_text())}]


@pytest.mark.slow(each=True)
@pytest.mark.parametrize("page", READ, ids=name_of)
def test_what_a_page_shows_runs_as_printed(page, request, capsys):
    text = page.read_text()
    commands = "with_server" if "manage.py" in text else "reader"
    reader = request.getfixturevalue("served" if PRINTED_ADDRESS in text else commands)
    reader.read(text)
    printed = reader.printed + capsys.readouterr().out
    assert not [words for words in TELLS.get(name_of(page), []) if words not in printed]


def test_every_page_that_promises_something_is_read():
    assert set(TELLS) <= set(map(name_of, PAGES))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    assert {language for language, _ in blocks(page.read_text())} <= RUN | SHOWN


def anchors(page):
    """The headings of a page, as GitHub makes anchors of them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_inside_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        to = page.parent / target if target else page
        assert to.exists(), target
        assert not anchor or anchor in anchors(to), f"{target}#{anchor}"


def stands(name):
    """Whether the module of a dotted name is there, and holds what else the name says."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        folder = ROOT.joinpath(*parts[:n])
        sources = (folder.with_suffix(".py"), folder / "__init__.py")
        if source := next(filter(Path.is_file, sources), None):
            return n == len(parts) or re.search(rf"\b{parts[n]}\b", source.read_text()) is not None
        if folder.is_dir():
            return n == len(parts)
    return False


def test_every_module_that_a_text_names_is_there():
    packages = ("analytics", "selection", "leaderboard", "perf", "tests")
    texts = [path for one in (*packages, "docs") for path in (ROOT / one).rglob("*.[pm][yd]")]
    names = rf"`((?:{'|'.join(packages)})(?:\.\w+)+)`"
    named = {(path, name) for path in texts for name in re.findall(names, path.read_text())}
    assert [pair for pair in named if not stands(pair[1])] == []


def test_every_file_that_a_page_names_is_there():
    tops = ("analytics", "selection", "leaderboard", "perf", "tests", "tools")
    files = [f"/{path.relative_to(ROOT)}" for one in tops for path in (ROOT / one).rglob("*.py")]
    files += [f"/{path.name}" for path in ROOT.glob("*.py")]
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / one / "README.md" for one in ("analytics", "selection")),
    ]
    named = {(page, path) for page in pages for path in re.findall(r"`([\w/]+\.py)`", page.read_text())}
    assert [pair for pair in named if not any(file.endswith(f"/{pair[1]}") for file in files)] == []


REPLAYED = {
    "SWE-bench Verified": "swebench_verified",
    "GAIA": "hal_gaia",
    "CoreBench Hard": "hal_corebench_hard",
    "τ-bench Airline": "hal_taubench_airline",
    "SciCode": "hal_scicode",
}


def test_the_readme_claims_what_was_replayed():
    kept = (DOCS / "evidence" / "replay.txt").read_text()
    readme = (ROOT / "README.md").read_text()
    claimed = re.findall(
        r"^\| (.+) \| (\d+) × (\d+) \| (.+) \| (.+) \((.+)\) \| (.+) \((.+)\) \| (.+) \|$",
        readme,
        re.MULTILINE,
    )
    assert [name for name, *_ in claimed] == list(REPLAYED)
    for name, agents, tasks, saved, pairs, random, five, random_five, correct in claimed:
        figures = kept.partition(f"\n{REPLAYED[name]}.csv.gz\n")[2].partition("\n\n")[0]
        assert f"agents            {agents} with full runs on {tasks} tasks" in figures
        assert f"trials saved      {saved} " in figures
        assert f"pairs in order    {pairs} " in figures
        assert f"random tasks at the same cost: {random}\n" in figures
        assert re.search(
            rf"^best five found   {five}\b.*; random tasks: {random_five}$", figures, re.MULTILINE
        )
        assert f"95% intervals     {correct} " in figures
    saved = [float(row[3].rstrip("%")) for row in claimed]
    assert f"saved {min(saved):.0f}% to {max(saved):.0f}% of the trials" in readme


# ------------------------------------------------------------------------------------------ what is public


@pytest.mark.parametrize("name", sorted(reference.PAGES))
def test_the_reference_is_as_it_would_be_written(name):
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == reference.PAGES[name]()


def test_the_reference_has_no_other_page():
    assert {path.name for path in (DOCS / "reference").iterdir()} == set(reference.PAGES)


def commands():
    return sorted(name for name, app in get_commands().items() if app == "leaderboard.terminal")


def options(parser):
    return {option for action in parser._actions for option in action.option_strings}


def listed(text, name):
    """What a page of the reference says of a command, and of the options that commands have in common."""
    common, rows = text.partition("\n## Options in common")[2], f"^- `{name}[ `].*(?:\n  - .*)*"
    (row,) = re.findall(rows, text, re.MULTILINE)
    return row + common


@pytest.mark.parametrize("name", commands())
def test_every_command_is_listed_with_its_options(name):
    told = listed((DOCS / "reference" / "commands.md").read_text(), name)
    own = options(load_command_class("leaderboard.terminal", name).create_parser("manage.py", name))
    common = options(BaseCommand().create_parser("manage.py", name))
    assert not [option for option in own - common if option not in told]


COMMANDS = [
    ("selection", selection),
    ("analytics", analytics),
    ("analytics.research", research),
    ("analytics.research.tuning", tuning),
]


@pytest.mark.parametrize(("package", "main"), COMMANDS)
def test_every_command_line_is_listed_with_its_flags(package, main, capsys):
    def help_of(*arguments):
        with pytest.raises(SystemExit):
            main([*arguments, "--help"])
        return capsys.readouterr().out

    names = re.findall(r"^    ([a-z]+)\b", help_of(), re.MULTILINE)
    assert len(names) >= 5
    text = (DOCS / "reference" / "analyses.md").read_text()
    of_package = next(part for part in text.split("\n## ") if part.startswith(f"`python -m {package}`"))
    tables = (DOCS / "reference" / "commands.md").read_text().partition("\n## Options in common")[2]
    of_all = text.partition("\n## ")[0] + text.partition("\n## Options in common")[2] + tables
    for name in names:
        (row,) = re.findall(rf"^- `{name}\b.*(?:\n  - .*)*", of_package, re.MULTILINE)
        flags = set(re.findall(r"--[a-z-]+", help_of(name))) - {"--help"}
        assert not [flag for flag in flags if flag not in row + of_all], name


def test_every_setting_is_described_where_it_is_read():
    readers = r"\benv\.\w+|\b(?:required|whole|flag|one_of|address)|environ\.(?:get|setdefault)"
    reading = rf'(?:{readers})\(\s*"([A-Z_]+)"'
    sources = [*(ROOT / "leaderboard").glob("*.py"), ROOT / "manage.py"]
    read = {name for path in sources for name in re.findall(reading, path.read_text())}
    assert {"ALLOWED_HOSTS", "BANDSTAND_HOME", "DATABASE_URL", "LOG_LEVEL", "SECRET_KEY"} <= read
    declared = reference.declared_settings()
    assert not read - declared.keys()
    assert set(reference.BASIC_SETTINGS) <= declared.keys()


def test_every_job_is_told():
    page = (DOCS / "monitoring.md").read_text()
    assert not [kind for kind in JOBS if f"\n| {kind} |" not in page]


def test_every_event_is_told():
    page = (DOCS / "webhooks.md").read_text()
    assert not [kind for kind in EventKind.values if f"\n| `{kind}` |" not in page]


def test_the_workflow_of_pages_uploads_what_it_makes():
    (workflow,) = [block for language, block in blocks((DOCS / "site.md").read_text()) if language == "yaml"]
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    uses = {step.get("uses", "").partition("@")[0]: step.get("with") for step in job["steps"]}
    (made,) = [step["run"] for step in job["steps"] if "run" in step]
    assert re.match(r'make -C bandstand site FILE="\$GITHUB_WORKSPACE/\w+\.csv" ', made)
    assert uses["actions/upload-pages-artifact"] == {"path": "bandstand/site"}
    assert {"actions/checkout", "actions/setup-python", "actions/deploy-pages"} <= uses.keys()


def addresses(patterns, before="/"):
    for pattern in patterns:
        address = before + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
        if isinstance(pattern, URLPattern):
            yield address
        else:
            yield from addresses(pattern.url_patterns, address)


def test_every_address_is_told():
    found = set(addresses(get_resolver().url_patterns))
    assert len(found) >= 6
    # Tables of the admin, and steps of signing in, stand behind their first address.
    behind = {one for one in found if one.startswith(("/admin/", "/accounts/"))}
    first_cells = re.findall(r"^\| (`[^|]*) \|", (DOCS / "api.md").read_text(), re.MULTILINE)
    told = re.findall(r"`(?:[A-Z]+ )?(/[^`]*)`", "\n".join(first_cells))
    assert (found - behind) | {"/admin/", "/accounts/login/"} == set(told)
