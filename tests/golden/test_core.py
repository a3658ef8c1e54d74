"""Boards, commands and printed text of the two packages below the service."""

import json

import pytest

from analytics.flat_file import read
from analytics.record import Record
from selection.cli import main
from selection.rules import Rules
from selection.standings import answer
from selection.standings.printed import text
from tests.golden.keeping import as_text, check, digest
from tests.golden.worlds import AS_OF, DEMONSTRATION, mixed_text, prompts_text
from tests.once import once

REAL = ("hal_gaia", "hal_corebench_hard", "terminal_bench_core_011", "hal_taubench_airline")
COMMANDS = {
    "standings": [],
    "band": [],
    "ranks": [],
    "compare": ["--agents", "OpenHands CodeAct 2.1 (Claude 3.5 Sonnet 20241022)", "SWE-agent (GPT-4)"],
    "drift": [],
    "replay": ["--seeds", "1"],
}
COMPUTES = {  # what the text and the JSON of a command have in common
    "standings": "selection.standings.answer",
    "ranks": "selection.standings.answer",
    "compare": "selection.standings.pairs.pairs",
    "drift": "selection.watch.replay",
    "replay": "selection.cli_replay.replay",
}


def board_of(path, **rules):
    standings = answer(Record.from_flat(read(path, as_of=AS_OF)), Rules(**rules))
    return as_text(standings.as_plain()), text(standings)


@pytest.mark.parametrize("target", ["subset", "domain"])
def test_the_demonstration(target):
    kept, said = board_of(DEMONSTRATION, target=target)
    check(f"demonstration-{target}", {"board": kept, "printed": said})


@pytest.mark.parametrize(("name", "rows"), [("prompts", prompts_text), ("mixed", mixed_text)])
def test_small_files(tmp_path, name, rows):
    path = tmp_path / f"{name}.csv"
    path.write_text(rows())
    kept, said = board_of(path)
    check(name, {"board": kept, "printed": said})


@pytest.mark.parametrize("name", REAL)
def test_real_boards_by_digest(real_data, name):
    kept, said = board_of(real_data / f"{name}.csv.gz")
    check(f"digest-{name}", {"board": digest(kept), "printed": digest(said)})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, capsys, monkeypatch):
    if command in COMPUTES:
        once(monkeypatch, COMPUTES[command])
    arguments = [command, str(DEMONSTRATION), *COMMANDS[command]]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    check(f"command-{command}", {"text": said, "json": as_text(json.loads(capsys.readouterr().out))})
