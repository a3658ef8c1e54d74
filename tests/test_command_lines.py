"""What every command line does alike: help, and a reader that stops reading."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from analytics.cli import main as analytics
from analytics.command_line import Parser, add_command, flat_file, run
from analytics.record import Record
from analytics.research.cli import main as research
from analytics.research.tuning.cli import main as tuning
from leaderboard import command
from selection.bands import pass_rates
from selection.cli import main as selection

REQUIRED = {
    "variance": ["--outcome", "o", "--random", "a"],
    "dstudy": ["--facets", "N=a", "--design", "N=1"],
    "panels": ["--members", "a,b"],
    "next": ["--agent", "A"],
    "surrogate": ["--judge", "j", "--human", "human", "--random-sample"],
}
ROOT = Path(__file__).resolve().parent.parent
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,valid"
COMMANDS = {
    selection: ("band", "validate", "compare", "ranks", "drift"),
    analytics: ("variance", "dstudy", "icc", "harness", "table"),
    research: ("pairwise", "surrogate", "turns", "panels", "gaming"),
}


@pytest.fixture
def file(tmp_path):
    """16 agents on 30 tasks, two trials each; nobody has a valid outcome on the last task."""
    rng = np.random.default_rng(0)
    distance = np.linspace(-1.5, 1.5, 16)[:, None] - np.linspace(-1.5, 1.5, 30)
    rows = [
        f"B,a{i:02d},S{i % 2},M{i},2026-01-{i + 1:02d},t{j:02d},{trial},{int(rng.random() < p)},{int(j < 29)}"
        for (i, j), p in np.ndenumerate(1 / (1 + np.exp(-distance)))
        for trial in (1, 2)
    ]
    path = tmp_path / "outcomes.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def without_reader(*arguments):
    """Run a program whose output nobody reads, as behind `| head -0`; it is buffered, as it is by default."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
        )
    finally:
        os.close(writing)


# --------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize(
    ("main", "arguments"), [(main, [name]) for main in COMMANDS for name in COMMANDS[main]]
)
def test_every_command_has_help(main, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    assert f"{arguments[0]} [-h]" in capsys.readouterr().out


@pytest.mark.parametrize("main", COMMANDS)
def test_help_lists_every_command(main, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(re.search(rf"\n    {name}\s", told) for name in COMMANDS[main])
    assert "%%" not in told


def test_a_percent_sign_is_shown_as_one(capsys):
    with pytest.raises(SystemExit):
        selection(["standings", "--help"])
    told = capsys.readouterr().out
    assert "95% of" in told
    assert "%%" not in told


# ------------------------------------------------------------------------------------- a reader that stops


@pytest.mark.parametrize("package", ["selection", "analytics"])
def test_help_that_nobody_reads_is_no_error(package):
    ended = without_reader("-m", package, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [("selection", "band", "--json"), ("analytics", "icc")])
def test_an_answer_that_nobody_reads_is_no_error(file, arguments):
    package, name, *options = arguments
    ended = without_reader("-m", package, name, file, *options)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["help"], ["standings", "--help"], ["check"]])
def test_a_service_command_that_nobody_reads_ends_as_by_the_signal(arguments):
    """What stood behind the print may not have been done: no success, but no traceback either."""
    ended = without_reader("manage.py", *arguments)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


def test_a_long_table_cut_off_in_the_middle_of_writing():
    """A block of the buffer breaks the pipe while the command still runs, as under `standings | head`."""
    script = (
        "import sys\n"
        "from leaderboard import command\n"
        "def rows(arguments):\n"
        "    for _ in range(10_000): sys.stdout.write('a,b,c\\n')\n"
        "command.run = rows\n"
        "command.main()\n"
    )
    ended = without_reader("-c", script)
    assert (ended.returncode, ended.stderr) == (command.READER_GONE, "")


def with_output(file, redirected, *arguments):
    """Run a program whose output goes where a shell says."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", sys.executable, "-m", *map(str, [*arguments, file])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    )


@pytest.mark.parametrize(
    ("redirected", "why"),
    [
        ("> /dev/full", "the answer cannot be written (No space left on device)"),
        (">&-", "standard output is closed"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("selection", "standings"),
        ("selection", "band", "--json"),
        ("analytics", "icc"),
        ("analytics.research", "gaming"),
        ("analytics.research.tuning", "--help"),
    ],
)
def test_an_answer_that_cannot_be_written_is_told_in_a_line(file, arguments, redirected, why):
    ended = with_output(file, redirected, *arguments)
    assert (ended.returncode, ended.stderr) == (1, f"python -m {arguments[0]}: {why}\n")


# ------------------------------------------------------------------------------------------- odd arguments


class Stopped(BaseException):
    """Ends a command when its parser is made."""


def parser_of(main):
    def stop(parser, *_):
        raise Stopped(parser)

    with patch.object(Parser, "parse_args", stop), pytest.raises(Stopped) as stopped:
        main([])
    return stopped.value.args[0]


def options(*, is_odd):
    """Every option of every command for which this holds, but for those that exclude another."""
    for main in (selection, analytics, research, tuning):
        parser = parser_of(main)
        for name, of in parser._subparsers._group_actions[0].choices.items():
            rivals = [one for group in of._mutually_exclusive_groups for one in group._group_actions]
            for action in of._actions:
                if action.option_strings and action.nargs != 0 and action not in rivals and is_odd(action):
                    yield pytest.param(main, name, action, id=f"{main.__module__} {name} {action.dest}")


def refusal(main, name, action, value, file, capsys):
    said = [action.option_strings[0], *[value] * (action.nargs if isinstance(action.nargs, int) else 1)]
    try:
        code = main([name, str(file), *REQUIRED.get(name, []), *said])
    except SystemExit as ended:
        code = ended.code
    out, error = capsys.readouterr()
    assert (code, out, error.count("\n")) == (2, "", 1), error
    return error


@pytest.mark.parametrize(
    ("main", "name", "action"), list(options(is_odd=lambda one: not one.type and not one.choices))
)
def test_an_argument_that_is_no_text_is_refused(main, name, action, file, capsys):
    said = refusal(main, name, action, "\udcff", file, capsys)
    assert f"{action.option_strings[0]}: '\\udcff' is not UTF-8 text" in said


@pytest.mark.parametrize(
    ("main", "name", "action"),
    list(options(is_odd=lambda one: getattr(one.type, "__name__", "") == "int")),
)
def test_a_whole_number_has_a_most(main, name, action, file, capsys):
    for n in (2**63, 10**30):
        assert f"argument {action.option_strings[0]}: {n:,} is too large. " in refusal(
            main, name, action, str(n), file, capsys
        )
    assert f"argument {action.option_strings[0]}: invalid int value: 'x'" in refusal(
        main, name, action, "x", file, capsys
    )


def test_bounds_let_through_what_they_state(file, capsys):
    assert analytics(["harness", str(file), "--seed", str(2**63 - 1), "--draws", "100"]) in (0, 2)
    assert selection(["standings", str(file), "--seed", str(2**63 - 1), "--window", "1000000"]) == 0
    assert "more than" not in capsys.readouterr().err


def test_a_list_of_tasks_may_have_a_name_that_is_no_text(file, tmp_path, capsys):
    tasks = tmp_path / "\udcff.txt"
    tasks.write_text("".join(f"t{j:02d}\n" for j in range(20)))
    assert selection(["standings", str(file), "--universe", str(tasks), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_tasks"] == 20


# ---------------------------------------------------------------------------------------------- no pandas


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "selection", "band", "{file}"),
        ("-m", "analytics", "icc", "{file}"),
        ("manage.py", "demo", "--write", "{file}.csv"),
    ],
)
def test_no_program_imports_pandas(file, arguments):
    """Where it is installed pyarrow would, to ask of a list whether it is one of pandas: a second."""
    command = [sys.executable, "-X", "importtime", *(one.format(file=file) for one in arguments)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert re.search(r"\| +pyarrow\.lib$", ended.stderr, re.MULTILINE)
    assert not re.search(r"\| +pandas\.", ended.stderr)


@pytest.mark.parametrize(
    ("arguments", "most", "without"),
    [
        (
            ("-m", "selection", "band", "{file}"),
            550,
            "numpy.f2py.f2py2e unittest scipy.linalg scipy.sparse scipy.stats sklearn rich django",
        ),
        (("manage.py", "help"), 450, "numpy pyarrow rest_framework leaderboard.settings"),
    ],
)
def test_a_short_command_imports_little(file, arguments, most, without):
    """Of each start most is spent on imports."""
    command = [sys.executable, "-X", "importtime", *(one.format(file=file) for one in arguments)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr[-500:]
    imported = re.findall(r"^import time: .*\| +(\S+)$", ended.stderr, re.MULTILINE)
    assert not set(imported) & set(without.split())
    assert len(imported) <= most


# ---------------------------------------------------------------------------------------------- no memory


def more_than_there_is(_):
    np.empty(1 << 56)


def test_a_lack_of_memory_is_told_in_a_line(file, monkeypatch, capsys):
    parser = Parser(prog="python -m test")
    add_command(parser.add_subparsers(), "fill", more_than_there_is, summary="")
    assert run(parser, ["fill", str(file)]) == 2
    assert capsys.readouterr().err == "python -m test fill: not enough memory\n"
    monkeypatch.setattr("leaderboard.terminal.help.CommandLine.execute", more_than_there_is)
    with pytest.raises(SystemExit, match=r"^Out of memory"):
        command.run(["manage.py", "check"])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "/locked/x.csv"), "^/locked/x.csv: Permission denied$"),
        (OSError(28, "No space left on device"), "^No space left on device$"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_in_a_line(monkeypatch, error, told):
    def fail(_):
        raise error

    monkeypatch.setattr("leaderboard.terminal.help.CommandLine.execute", fail)
    with pytest.raises(SystemExit, match=told):
        command.run(["manage.py", "check"])


# ------------------------------------------------------------------------------------------------ no file


@pytest.mark.parametrize("main", COMMANDS)
def test_a_file_that_is_not_there(main, tmp_path, capsys):
    for path, why in ((tmp_path / "no.csv", "file not found: {}"), (tmp_path, "{} is a folder")):
        for name in COMMANDS[main]:
            assert main([name, *REQUIRED.get(name, []), str(path)]) == 2
            said = capsys.readouterr().err
            assert f"{name}: {why.format(path)}. Give a " in said
            assert "Errno" not in said


def test_another_file_that_is_not_there(file, tmp_path, capsys):
    missing = tmp_path / "none.txt"
    assert selection(["standings", str(file), "--subsets", str(missing)]) == 2
    assert capsys.readouterr().err == f"python -m selection standings: file not found: {missing}\n"


NO_FILE, A_FOLDER = ("no.csv", "File not found: {}"), ("", "{} is a folder")
REFUSED = [(["load", "--benchmark", "toy"], [NO_FILE]), (["tasks", "toy"], [NO_FILE, A_FOLDER])]


@pytest.mark.django_db
@pytest.mark.parametrize(("arguments", "refused"), REFUSED)
def test_a_service_command_without_its_file(arguments, refused, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command.postgres, "ensure", lambda: None)
    for name, why in refused:
        path = tmp_path / name
        with pytest.raises(SystemExit) as ended:
            command.run(["manage.py", *arguments, str(path)])
        assert ended.value.code == 2
        assert why.format(path) in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- told to end


def test_a_service_command_told_to_end_closes_what_is_open():
    """Without it the exit functions, which stop the database, would not run."""
    script = (
        "import atexit, os, signal, time\n"
        "from leaderboard import command\n"
        "atexit.register(lambda: print('closed', flush=True))\n"
        "def long(arguments):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
        "command._execute = long\n"
        "command.main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGTERM, "closed\n", "")


def test_an_analysis_that_is_interrupted_says_nothing():
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background shell ignores it
        "from analytics.programs import begin_command\n"
        "begin_command()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(60)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_command_keeps_the_memory_of_an_array_for_the_next_one():
    script = (
        "import ctypes, resource\n"
        "from analytics.programs import begin_command\n"
        "def held():\n"
        "    pages = int(open('/proc/self/statm').read().split()[1])\n"
        "    return pages * resource.getpagesize()\n"
        "def kept():\n"
        "    before = held()\n"
        "    array = bytearray(b'x') * 2**26\n"
        "    del array\n"
        "    return (held() - before) >> 20\n"
        "first = kept()\n"
        "begin_command()\n"
        "print(first, kept(), hasattr(ctypes.CDLL(None), 'mallopt'))\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    if printed[2] == "False":
        pytest.skip("the C library is not glibc")
    assert int(printed[0]) < 8  # MiB
    assert 60 <= int(printed[1]) < 80


@pytest.mark.parametrize(
    "module", ["selection", "analytics", "analytics.research", "analytics.research.tuning"]
)
def test_a_program_interrupted_while_it_imports_says_nothing(module):
    script = (
        "import builtins, os, runpy, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "before = builtins.__import__\n"
        "def interrupted(name, *rest, **more):\n"
        "    if name == 'numpy':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return before(name, *rest, **more)\n"
        "builtins.__import__ = interrupted\n"
        f"runpy.run_module({module!r}, run_name='__main__')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_command_leaves_the_signal_as_it_was():
    before = signal.getsignal(signal.SIGTERM)
    command.run(["manage.py", "version"])
    assert signal.getsignal(signal.SIGTERM) is before


# --------------------------------------------------------------------------------------------------- band


def test_band_tells_which_conditions_its_pass_rates_come_from(tmp_path, capsys):
    """Ten agents under judge j1, two of them under j2 as well; the same words as the standings'."""
    rows = [
        f"B,a{i},S,M{i},,t{j:02d},1,{(i + j) % 2},1,{judge}"
        for i in range(10)
        for judge in (("j1", "j2") if i < 2 else ("j1",))
        for j in range(10)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"{HEAD},judge", *rows]) + "\n")
    assert selection(["band", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conditions"] == {
        "compared": ["judge j1"],
        "left_out": [["judge j2", 2]],
    }
    said = "Agents are compared under judge j1; left out: judge j2 (full runs of 2 agents)."
    for name in ("band", "standings"):
        assert selection([name, str(path)]) == 0
        assert said in capsys.readouterr().out


def test_band_tells_the_pass_rate_of_every_task(file, capsys):
    assert selection(["band", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    tasks = [f"t{j:02d}" for j in range(30)]
    assert list(found["pass_rates"]) == list(found["p_in_band"]) == tasks
    table = Record.from_flat(flat_file(file)).compared_table()
    rates = pass_rates(table.means[table.complete()])
    assert found["pass_rates"]["t29"] is found["p_in_band"]["t29"] is None
    np.testing.assert_array_equal([found["pass_rates"][task] for task in tasks[:29]], rates[:29])
    in_band = [task for task in tasks[:29] if 0.3 <= round(found["pass_rates"][task], 9) <= 0.7]
    assert found["subset"]["tasks"] == in_band


def test_the_probability_of_the_band_by_hand(tmp_path, capsys):
    """Ten agents, five of whom pass: P(0.3 ≤ p ≤ 0.7) under Beta(5.5, 5.5), summed over a fine grid."""
    rows = [f"B,a{i},S,M{i},,t,1,{i % 2},1" for i in range(10)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    assert selection(["band", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    density = (p * (1 - p)) ** 4.5
    share = density[(p > 0.3) & (p < 0.7)].sum() / density.sum()
    assert found["pass_rates"] == {"t": 0.5}
    assert found["p_in_band"]["t"] == pytest.approx(share, abs=1e-6)
