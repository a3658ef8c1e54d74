"""A search through real processes: interrupted, misbehaved, over budget."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from analytics.errors import CoreError
from analytics.research.tuning.cli import main
from analytics.research.tuning.protocol import candidates, run, winner
from analytics.research.tuning.search import best, evaluate_stored, search, trial_of
from analytics.research.tuning.store import Store, end_left_behind, started_at
from analytics.research.tuning.study import read_study
from tests.disks import fill, small_disk
from tests.tuning.kills import compared, trials
from tests.tuning.studies import HARNESS, study_file


def searched(path):
    store = Store(read_study(path))
    with store.writing():
        evaluate = evaluate_stored(store)
        return store, search(store.study, evaluate, store.trials(), keep=store.add, spent=store.cost_usd)


@pytest.mark.parametrize(
    "how",
    [
        'sampler = "random"\nn_trials = 4\npatience = 9',
        pytest.param(
            "n_trials = 4\npatience = 9\nhyperband = {min = 2, max = 4, factor = 2}",
            marks=pytest.mark.slow(each=True),
        ),
        pytest.param('sampler = "nsga2"\nn_trials = 4', marks=pytest.mark.slow(each=True)),
    ],
)
def test_in_two_sittings_it_finds_what_one_finds(tmp_path, how):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    for folder in (whole, halves):
        folder.mkdir()
    searched(study_file(whole, search=how))
    store = Store(read_study(study_file(halves, search=how)))
    with store.writing():
        kept = []

        def keep(trial):
            store.add(trial)
            kept.append(trial)
            if len(kept) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            search(store.study, evaluate_stored(store), [], keep=keep)
    searched(halves / "study.toml")
    assert trials(halves / "study.toml") == trials(whole / "study.toml")


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_killed_at_random_moments_it_ends_as_if_undisturbed(tmp_path, sampler):
    result = compared(tmp_path, sampler, n_trials=12, n_kills=10, seed=len(sampler))
    assert result.rough == result.quiet
    assert result.rough_files == result.quiet_files
    assert result.n_kills >= 8
    assert result.n_left == 0
    assert len(result.rough_files) <= result.n_asked <= len(result.rough_files) + result.n_kills


@pytest.mark.slow
def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    (tmp_path / "hang.sh").write_text("#!/bin/sh\nsleep 600 & echo $! > child.pid\nsleep 600\n")
    path = study_file(tmp_path, runs='command = ["sh", "hang.sh"]')
    path.write_text(path.read_text().replace("deadline_seconds = 20", "deadline_seconds = 0.5"))
    store, _ = searched(path)
    result = [trial_of(store.study, one) for one in store.trials()]
    assert [one.state for one in result] == ["failed"] * 5
    assert result[0].figures.why == "not done after 0.5 seconds"
    child = int((tmp_path / "child.pid").read_text())
    assert (
        not started_at(child) or Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 3", "ended with code 3"),
        ("kill -9 $$", "ended by signal SIGKILL"),
        ("kill -40 $$", "ended by signal 40"),
        (
            """read -r request
python -c 'import json, sys
path = json.loads(sys.argv[1])["answer"]
open(path, "w").write("{\\"cells\\": [" + "[]," * 2_000_000 + "0]}")' "$request"
""",
            "the answer has more than 2,000,000 objects and lists",
        ),
        ("true", "the run left no answer"),
        ("read -r line; echo ok", "the run left no answer"),
    ],
)
def test_a_program_that_fails_makes_a_failed_trial(tmp_path, body, why):
    (tmp_path / "bad.sh").write_text(f"#!/bin/sh\n{body}\n")
    store, _ = searched(study_file(tmp_path, runs='command = ["sh", "bad.sh"]', search="n_trials = 1"))
    (one,) = [trial_of(store.study, trial) for trial in store.trials()]
    assert (one.state, one.figures.why, one.figures.F) == ("failed", why, None)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("os.makedirs(place + '/inside')", "the answer is no file"),
        ("os.mkfifo(place)", "the answer is no file"),
        ("os.symlink('/dev/zero', place)", "the answer is no file"),
    ],
    ids=["folder", "pipe", "device"],
)
def test_an_answer_that_is_no_file_makes_a_failed_trial(tmp_path, made, why):
    (tmp_path / "odd.py").write_text(
        f"import json, os, sys\nplace = json.load(sys.stdin)['answer']\n{made}\n"
    )
    path = study_file(tmp_path, runs=f'command = ["{sys.executable}", "odd.py"]', search="n_trials = 2")
    store, _ = searched(path)
    result = [trial_of(store.study, trial) for trial in store.trials()]
    assert [(one.state, one.figures.why, one.figures.cost_usd) for one in result] == [
        ("failed", why, 0.0)
    ] * 2
    assert not list(store.runs.glob("*.json"))


def test_a_program_that_is_not_there_is_refused_at_once(tmp_path, capsys):
    assert main(["run", str(study_file(tmp_path, runs='command = ["./nowhere"]'))]) == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith("./nowhere cannot be started: No such file or directory")
    )


SILENT = """
import json, sys
from harness import run

request = json.load(sys.stdin)
try:
    with open(request["answer"], "w") as file:
        json.dump(run(request), file)
except OSError:
    pass
"""


@pytest.mark.parametrize("room", [0, 8 << 10])
@pytest.mark.parametrize("is_silent", [True, False])
def test_a_full_disk_is_no_fault_of_the_harness(tmp_path, capsys, room, is_silent):
    """The answer ends in its middle, and the program says so or not; with room again the run is made."""
    folder, filling = tmp_path / "disk", tmp_path / "disk" / "filling"
    with small_disk(folder, 8 << 20):
        runs = f"command = ['{sys.executable}', 'silent.py']" if is_silent else ""
        study = study_file(folder, search="n_trials = 3", n_tasks=40, runs=runs)
        (folder / "silent.py").write_text(SILENT)
        with Store(read_study(study)).writing():  # the folder is there
            pass
        fill(filling)
        os.truncate(filling, filling.stat().st_size - room)
        assert main(["run", str(study)]) == 2
        printed = capsys.readouterr().err.splitlines()[-1]
        assert printed.startswith("python -m analytics.research.tuning run: ")
        assert "no space" in printed.lower()
        assert "mend the harness" not in printed
        filling.unlink()
        assert main(["run", str(study)]) == 0
        assert main(["status", str(study), "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["n_failed"] == 0


def test_what_a_crash_left_running_is_ended_first(tmp_path):
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
    mark = tmp_path / "x.pid"
    mark.write_text(f"{left.pid} {started_at(left.pid)}\n")
    end_left_behind(mark)
    assert left.wait(timeout=10) == -signal.SIGKILL
    assert not mark.exists()


def test_another_process_of_that_number_is_left_alone(tmp_path):
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    mark = tmp_path / "x.pid"
    mark.write_text(f"{other.pid} 1\n")
    end_left_behind(mark)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_half_a_line_at_the_end_of_the_journal_is_dropped(tmp_path):
    path = study_file(tmp_path, search='sampler = "random"\nn_trials = 2\npatience = 9')
    searched(path)
    before = trials(path)
    journal = tmp_path / "study.tuning" / "journal.log"
    with journal.open("ab") as file:
        file.write(b'{"op_code": 4, "wor')
    path.write_text(path.read_text().replace("n_trials = 2", "n_trials = 3"))
    searched(path)
    assert trials(path)[:2] == before
    assert len(trials(path)) == 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a study that was run, to take copies of."""
    folder = tmp_path_factory.mktemp("finished")
    searched(study_file(folder, search='sampler = "random"\nn_trials = 1'))
    return folder


def rewritten(path, column, value):
    """Put one value into a whole column of stored runs."""
    table = parquet.read_table(path)
    place, n = table.schema.get_field_index(column), table.num_rows
    field = table.schema.field(place)
    parquet.write_table(table.set_column(place, field, pyarrow.array([value] * n, field.type)), path)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("plan.json", lambda path: path.write_text("{"), "plan.json is damaged"),
        ("plan.json", lambda path: path.write_text("[]"), "plan.json is damaged (no object)"),
        ("plan.json", lambda path: path.write_bytes(b"\xff"), "plan.json is damaged"),
        ("journal.log", lambda path: path.write_text("garbage\n"), "journal.log is damaged"),
        ("journal.log", lambda path: path.write_bytes(b"\xff\n"), "journal.log is damaged"),
        ("journal.log", lambda path: path.write_text('{"op_code": 99}\n'), "journal.log is damaged"),
        (
            "journal.log",
            lambda path: path.write_text(path.read_text().replace('"figures"', '"figurez"')),
            "journal.log is damaged",
        ),
        ("runs/*.parquet", lambda path: path.write_bytes(path.read_bytes()[:500]), "parquet is damaged"),
        ("runs/*.parquet", lambda path: path.write_bytes(b""), "parquet is damaged"),
        (
            "runs/*.parquet",
            lambda path: parquet.write_table(pyarrow.table({"a": [1]}), path),
            "parquet is damaged (it has other columns): delete it",
        ),
        (
            "runs/*.parquet",
            lambda path: rewritten(path, "model", "m9"),
            "parquet is damaged (model 'm9' was not asked for): delete it",
        ),
        ("runs/*.parquet", lambda path: rewritten(path, "run", -1), "(run -1 was not asked for)"),
    ],
)
def test_a_damaged_store_is_told_with_what_to_do(tmp_path, capsys, finished, name, damage, said):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    for path in (folder / "study.tuning").glob(name):
        damage(path)
    main(["report", str(folder / "study.toml")])  # tells what can be told, or refuses
    assert said in "".join(capsys.readouterr())
    assert main(["ablate", str(folder / "study.toml")]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("python -m analytics.research.tuning ablate: ")
    assert said in line


def test_a_journal_that_was_deleted_is_made_anew(tmp_path, finished):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    before = trials(folder / "study.toml")
    (folder / "study.tuning" / "journal.log").unlink()
    searched(folder / "study.toml")
    assert trials(folder / "study.toml") == before


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"9" * 400, b"0 1\n", b"", b"1"])
def test_a_damaged_mark_ends_nobody(tmp_path, mark):
    path = tmp_path / "x.pid"
    path.write_bytes(mark)
    end_left_behind(path)
    assert not path.exists()


def test_another_plan_is_another_study(tmp_path):
    path = study_file(tmp_path, search="n_trials = 1")
    searched(path)
    path.write_text(path.read_text().replace("seed = 1", "seed = 2"))
    with pytest.raises(CoreError, match=r"another plan \(seed differ\)"):
        Store(read_study(path))


def test_two_at_once_are_refused(tmp_path):
    path = study_file(tmp_path)
    first, second = Store(read_study(path)), Store(read_study(path))
    with first.writing(), pytest.raises(CoreError, match="another process works in"), second.writing():
        pass


def test_a_spent_budget_ends_it(tmp_path):
    # a trial: 3 models x 5 tasks x 3 runs at a cent
    path = study_file(
        tmp_path, search='sampler = "random"\nn_trials = 9\npatience = 9', top="budget = {usd = 0.8}"
    )
    store, why = searched(path)
    assert why == "the budget of $0.80 is spent"
    assert len(store.trials()) == 2


@pytest.mark.parametrize(
    ("usd", "is_paid"), [pytest.param(100, True, marks=pytest.mark.slow(each=True)), (3, False)]
)
def test_ablations_search_anew_within_the_budget(tmp_path, capsys, usd, is_paid):
    how = 'sampler = "random"\nn_trials = 1'
    path = study_file(tmp_path, search=how, top=f"budget = {{usd = {usd}}}")
    assert main(["run", str(path)]) == 0  # two full evaluations at 0.9 and a trial at 0.45: 2.25
    before = Store(read_study(path)).cost_usd()
    path.write_text(path.read_text().replace("usd = 3", "usd = 2"))
    capsys.readouterr()
    assert main(["ablate", str(path), "--search", "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)["ablations"]
    assert len(payload) == (40 if is_paid else 0)  # 5 conditions, 8 seeds
    paid = Store(read_study(path)).cost_usd() - before
    assert 0 < paid <= 0.45 * 31 if is_paid else paid == 0  # of 32 configurations none is run twice


# Right solutions 1 and .4, wrong ones .5 and .2: three of four pairs are told; on t01 they tie: (.75 + .5)/2.
POOR = [
    ("t00", 1.0, True),
    ("t00", 0.4, True),
    ("t00", 0.5, False),
    ("t00", 0.2, False),
    ("t01", 1.0, True),
    ("t01", 1.0, False),
]


@pytest.mark.parametrize(
    ("references", "top", "refused"),
    [
        (POOR, "", "its scorer tells right solutions from wrong ones with an AUC of 0.62 only"),
        (POOR, "tau_min = 0.625", ""),
        ([], "", ""),
    ],
    ids=["too few", "enough", "no references"],
)
def test_another_scorer_must_tell_right_references_from_wrong_ones(tmp_path, references, top, refused):
    """Of what changes a `measurement` parameter; more workers alone, an `instrument`, ask no scorer."""
    told_ = [dict(zip(("task", "score", "is_right"), one, strict=True)) for one in references]
    harness = HARNESS.replace(
        'return {"cells": cells}',
        f"asked = request['tasks']\n    references = [one for one in {told_!r} if one['task'] in asked]\n"
        "    return {'cells': cells, 'references': references}",
    )
    how = 'sampler = "random"\nn_trials = 4\npatience = 9'
    store = Store(read_study(study_file(tmp_path, search=how, top=top, harness=harness)))
    with store.writing():
        run(store, lambda *_: None)
    result = candidates(store)
    assert {one["scorer_auc"] for one in result} == {0.625 if references else None}
    why = {one["configuration"]["scorer"]: one["refused"] or "" for one in result}
    assert why == {"exact": "", "fuzzy": refused}
    able = [one for one in result if not refused or one["configuration"]["scorer"] == "exact"]
    assert winner(result) == max(able, key=lambda one: one["F"])


def test_what_would_cost_too_much_in_full_is_not_the_best(tmp_path):
    top = "budget = {usd_per_evaluation = 0.5}"  # 3 models x 10 tasks x 3 runs at a cent are 0.9
    store, _ = searched(study_file(tmp_path, search='sampler = "random"\nn_trials = 2', top=top))
    result = [trial_of(store.study, one) for one in store.trials()]
    assert [one.is_feasible for one in result] == [False, False]
    assert best(result) is None


def test_the_whole_from_the_command_line(tmp_path, capsys):
    path = study_file(tmp_path, search='sampler = "random"\nn_trials = 3\npatience = 9')
    assert main(["status", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["phase"] == 0
    assert main(["run", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["phase"], answer["n_trials"], answer["study"]) == (5, 3, "toy")
    assert answer["best"]["fingerprint"] in {one["fingerprint"] for one in answer["candidates"]}
    assert answer["best"]["F"] == max(one["F"] for one in answer["candidates"] if not one["refused"])
    assert answer["below_protocol"] == [
        "3 models, not 5",
        "10 tasks, not 100",
        "3 runs of a full evaluation, not 5",
        "3 trials, not 50",
    ]
    assert {one["condition"] for one in answer["ablations"]} >= {"full F", "without R"}
    for command in ("front", "protocol", "ablate", "report"):
        assert main([command, str(path)]) == 0
    told_ = capsys.readouterr().out
    anew = subprocess.run(  # Optuna's own lines are kept away from stderr where nothing is searched either
        [sys.executable, "-m", "analytics.research.tuning", "status", path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert anew.stderr == ""
    assert "**Below protocol:** 3 models, not 5;" in told_
    assert main(["ablate", str(path), "--search", "--seeds", "3"]) == 2
    assert "at least 8 seeds" in capsys.readouterr().err
