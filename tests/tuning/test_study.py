"""The study file: every fault is one line that names the place and the rule."""

import pytest

from analytics.research.tuning.cli import main
from analytics.research.tuning.study import read_study
from tests.tuning.studies import study_file


def test_what_is_read(tmp_path):
    study = read_study(study_file(tmp_path))
    assert study.models == ("m1", "m2", "m3")
    assert len(study.tasks) == 10
    assert len(study.subsample) == 5
    assert set(study.subsample) < set(study.tasks)
    assert study.baseline == {"workers": 4, "scorer": "exact"}
    assert study.search.rungs == (3,)


def test_each_stratum_gives_its_share(tmp_path):
    path = study_file(tmp_path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("tasks = ")]
    strata = '{easy = ["a", "b", "c", "d"], hard = ["e", "f"], rare = ["g"]}'
    path.write_text("\n".join([f"tasks = {strata}", *lines]))
    drawn = read_study(path).subsample
    assert [sum(task in names for task in drawn) for names in ("abcd", "ef", "g")] == [2, 1, 1]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("seed = 1", "seed = -1", "seed: -1 is no whole number of at least 0"),
        ("seed = 1", "sead = 1", "sead: known are name, seed"),
        ("seed = 1", "seed = ", "is no TOML"),
        ('models = ["m1", "m2", "m3"]', 'models = ["m1"]', "models: a list of at least 2 names"),
        ('models = ["m1", "m2", "m3"]', 'models = ["m1", "m1"]', "models: a name stands twice"),
        ('callable = "harness:run"', "", "command, callable: one of them says what runs the harness"),
        ('callable = "harness:run"', 'command = "x"', "command: a list of texts, the program first"),
        ("high = 16", "high = 0", "space.workers: low, 1, is not below high, 0"),
        ('kind = "int"', 'kind = "whole"', "space.workers.kind: 'whole' is none of float, log, int, choice"),
        ('role = "instrument"', "", "space.workers.role: None is none of instrument, measurement"),
        ("workers = 4", "workers = 40", "baseline.workers: 40 is outside of the space"),
        ("workers = 4", "workers = true", "baseline.workers: True is outside of the space"),
        ("workers = 4", "worker = 4", "baseline.worker: is no parameter of the space"),
        ("fraction = 0.5", "fraction = 1.5", "search.fraction: at most 1"),
        ("n_trials = 5", 'sampler = "grid"', "search.sampler: 'grid' is none of tpe, random, nsga2"),
        ("n_trials = 5", "n_runs = 1", "search.n_runs: 1 is no whole number of at least 2"),
        ('hardware = "any"', "", "metadata.'hardware': has to be stated"),
        ("seed = 1", f"seed = {'9' * 5000}", "is no TOML"),
        ("seed = 1", f"seed = {2**63}", f"seed: {2**63}, beyond 64 bits, is no whole number of at least 0"),
        ("n_trials = 5", f"hyperband = {{min = 2, max = 1{'0' * 400}}}", "search.hyperband.max: 1000"),
        ("high = 16", f"high = 1{'0' * 400}", "space.workers.high: 1000"),
        ("workers = 4", f"workers = 1{'0' * 400}", "is outside of the space"),
        ("[space.workers]", "[[space.workers]]", "space.workers: a table"),
        ('callable = "harness:run"', 'command = [""]', "command: the program has a name"),
        ('callable = "harness:run"', 'command = ["a\\u0000"]', "no text holds a NUL"),
        ("seed = 1", f"seed = {'[' * 9_999}", "is no TOML: maximum recursion depth"),
        ("seed = 1", f"{'k' * 9_999} = 1", "study.toml: kkkk"),
        ("n_trials = 5", f'sampler = "{"x" * 9_999}"', "xxx… is none of tpe, random, nsga2"),
        ("deadline_seconds = 20", "deadline_seconds = 1e10", "deadline_seconds: at most 2,000,000"),
        (
            "n_runs = 3",
            "n_runs = 1000000000",
            "full.n_runs: models × tasks × runs are at most 1,000,000, not 30,000,000,000",
        ),
    ],
)
def test_a_fault_is_one_line(tmp_path, capsys, before, after, said):
    path = study_file(tmp_path)
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    assert main(["status", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m analytics.research.tuning status: ")
    assert said in line
    assert len(line) < 800


def test_a_list_of_tasks_is_a_file_of_some_size(tmp_path, capsys):
    path = study_file(tmp_path)
    strata = [line for line in path.read_text().splitlines() if not line.startswith("tasks = ")]
    listed = tmp_path / "tasks.txt"
    for told, said in (("/dev/zero", "zero is no file"), ("tasks.txt", "tasks.txt is larger than 16 MiB")):
        path.write_text("\n".join([f'tasks = "{told}"', *strata]))
        listed.write_bytes(b"t\n" * (9 << 20))
        assert main(["status", str(path)]) == 2
        assert f"study.toml: tasks: {said}" in capsys.readouterr().err
    listed.write_text("\n".join(f"t{place}" for place in range(100_000)))
    assert main(["status", str(path)]) == 0
    assert main(["status", "/dev/zero"]) == 2
    assert "zero is no file" in capsys.readouterr().err
    assert main(["status", "x" * 5_000]) == 2
    assert "file not found" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["status", str(tmp_path / "none.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "file not found: " + str(tmp_path / "none.toml") + ". Give a study in TOML (docs/tuning.md)"
    )
    path = study_file(tmp_path)
    strata = [line for line in path.read_text().splitlines() if not line.startswith("tasks = ")]
    path.write_text("\n".join(['tasks = "a\\u0000b"', *strata]))
    assert main(["status", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "tasks: a text of printable characters" in line


def test_a_mark_at_the_head_of_the_file(tmp_path, capsys):
    path = study_file(tmp_path)
    path.write_text("\ufeff" + path.read_text().replace("\n", "\r\n"), encoding="utf-8")
    assert main(["status", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("study  ")
