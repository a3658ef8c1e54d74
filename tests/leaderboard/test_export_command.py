"""`manage.py export`, and the way back: the same board from what it wrote."""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from django.core.management import CommandError, call_command

from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.terminal.management.commands.export import FOLDERS, UNFINISHED, replacing
from selection.cli import main as selection_main
from tests.leaderboard.test_same_board import second_version
from tests.toys import csv_text, graded, load_text, only, recomputed, rows_text

pytestmark = pytest.mark.django_db(transaction=True)
SCHEMAS = Path(__file__).resolve().parents[1] / "reference" / "every_eval_ever"
FORMATS = ("csv", "ndjson", "parquet", "hugging-face")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def back(format, slug):
    """Export with subset versions, load into a new benchmark, and recompute."""
    call_command("export", "toy", "--format", format, "--with-subsets", "--force", verbosity=0)
    folder = format == "hugging-face"
    file = "toy-hugging-face/data/outcomes.parquet" if folder else f"toy.{format}"
    beside = "toy-hugging-face.subsets.json" if folder else "toy.subsets.json"
    call_command("load", file, "--benchmark", slug, "--subsets", beside)
    return recomputed(slug)


def test_the_same_board_from_each_format(here):
    """History, a second version of the subset, agents that ran either, one rule that is not the default."""
    load_text(csv_text(graded(24, 60)))
    first = recomputed()
    policy = Policy.objects.get()
    Policy.objects.create(benchmark=policy.benchmark, number=2, default_target="subset", base_seed=7)
    runs = graded(3, 60, seed=5, prefix="s")
    tasks = set(first.subset.tasks.values_list("name", flat=True))
    load_text(csv_text({name: only(marks, tasks) for name, marks in runs.items()}))
    second_version(first.subset)
    tasks = set(recomputed().subset.tasks.values_list("name", flat=True))
    load_text(
        csv_text({name: only(marks, tasks) for name, marks in graded(2, 60, seed=6, prefix="u").items()})
    )
    board = recomputed()
    how = {entry.line["how"] for entry in board.entries.all()}
    assert how == {"measured", "estimated"}
    for number, format in enumerate(FORMATS):
        again = back(format, f"again{number}")
        assert again.digest == board.digest, format
        assert again.content == board.content, format
    plain = recompute_without_versions()
    assert plain.digest != board.digest


def recompute_without_versions():
    call_command("load", "toy.csv", "--benchmark", "without")
    return recomputed("without")


def test_the_same_board_of_graded_outcomes_with_costs_dates_and_failures(here):
    rng = np.random.default_rng(8)
    rows = [
        {
            "agent": f"=a{i:02d}",
            "organisation": "Org, Inc.",
            "weights": ("open", "closed", "")[i % 3],
            "link": f"https://example.org/{i}",
            "submitted_at": ("2025-03", "2025-03-04", "2025-03-04T05:06:07Z", "")[i % 4],
            "task": f"t/{j:02d}",
            "category": "@c" if j % 2 else "",
            "run": f"r{r}",
            "temperature": 0.1 * (j % 3),
            "outcome": round(float(rng.random() * (i + 4) / 20), 3),
            "valid": int(rng.random() > 0.02),
            "cost_usd": round(float(rng.random()), 4),
            "n_input_tokens": int(rng.integers(1, 9000)),
            "seconds_execution": round(float(rng.random()), 2),
            "note": "-x",
        }
        for i in range(16)
        for j in range(24)
        for r in range(2)
    ]
    text = rows_text(rows).replace("Org, Inc.", '"Org, Inc."')
    load_text(text)
    board = recomputed()
    for format in ("csv", "ndjson", "parquet"):
        assert back(format, f"again-{format}").digest == board.digest, format


def test_a_copy_goes_on_as_the_original_does(by_ridge, here):
    """Agents that come later change both boards alike: the calibration, which came along, is fitted anew."""
    load_text(csv_text(graded(17, 40)))
    first = recomputed()
    assert first.calibration.n_agents == 17
    assert back("csv", "again").digest == first.digest
    later = csv_text(graded(5, 40, seed=3, prefix="z"))
    for slug in ("toy", "again"):
        load_text(later, slug=slug)
    toy, again = recomputed(), recomputed("again")
    assert toy.calibration.n_agents == 22
    assert (again.digest, again.calibration.residuals) == (toy.digest, toy.calibration.residuals)


@pytest.mark.slow(each=True)
def test_the_demonstration_comes_back(here):
    write_history(here / "history.csv")
    load_file(here / "history.csv", "toy")
    tasks = set(recomputed().subset.tasks.values_list("name", flat=True))
    write_newcomers(here / "new.csv", tasks=tasks)
    load_file(here / "new.csv", "toy")
    board = recomputed()
    assert "estimated" in {entry.line["how"] for entry in board.entries.all()}
    assert back("csv", "again").digest == board.digest


def load_file(path, slug):
    call_command("load", str(path), "--benchmark", slug)


def test_a_file_by_itself_takes_the_versions_too(here, capsys):
    load_text(csv_text(graded(20, 40)))
    board = recomputed()
    call_command("export", "toy", "--with-subsets")
    capsys.readouterr()
    selection_main(["standings", "toy.csv", "--subsets", "toy.subsets.json", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["agents"] == json.loads(json.dumps(standings_plain(board)["agents"]))


def standings_plain(board):
    from leaderboard.boards.queries import standings_of

    return standings_of(board).as_plain()


def test_versions_go_into_a_new_benchmark_only(here):
    load_text(csv_text(graded(16, 20)))
    recomputed()
    call_command("export", "toy", "--with-subsets")
    with pytest.raises(CommandError, match="subset versions of its own"):
        call_command("load", "toy.csv", "--benchmark", "toy", "--subsets", "toy.subsets.json")
    with pytest.raises(CommandError, match="for a new benchmark, --own for one that has results"):
        call_command("load", "toy.csv", "--benchmark", "other", "--own", "--subsets", "toy.subsets.json")
    for text in ("{", "[]", "{}", '{"policy": {}}'):
        Path("bad.json").write_text(text)
        with pytest.raises(CommandError, match="not a file of subset versions"):
            call_command("load", "toy.csv", "--benchmark", "other", "--subsets", "bad.json")
    assert not Benchmark.objects.filter(slug="other").exists()


def test_a_file_is_there_whole_or_not_at_all(here, monkeypatch):
    load_text(csv_text({"a": "10"}))
    call_command("export", "toy", "--output", "out.csv")
    before = Path("out.csv").read_bytes()
    with pytest.raises(CommandError, match=r"already exists\. Add --force") as refused:
        call_command("export", "toy", "--output", "out.csv")
    assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="Folder not found: nowhere"):
        call_command("export", "toy", "--output", "nowhere/out.csv")

    def breaks(self):
        yield from ()
        raise OSError("gone")

    monkeypatch.setattr("leaderboard.submissions.export.outcomes.OutcomeRows.batches", breaks)
    with pytest.raises(OSError, match="gone"):
        call_command("export", "toy", "--output", "out.csv", "--force")
    assert [path.name for path in here.iterdir()] == ["out.csv"]
    assert Path("out.csv").read_bytes() == before


@pytest.mark.parametrize("command", [("export", "toy", "--output"), ("export-benchmark", "toy"), ("backup",)])
def test_a_file_replaces_a_regular_file_alone(here, command):
    load_text(csv_text({"a": "10"}))
    Path("mine").mkdir()
    Path("mine", "thesis.tex").touch()
    os.mkfifo("pipe")
    Path("link").symlink_to("mine")
    for there in ("mine", "pipe", "link", "."):
        with pytest.raises(CommandError, match=rf"^{there} is not a regular file\. Name another") as refused:
            call_command(*command, there, "--force")
        assert refused.value.returncode == 2
    assert Path("mine", "thesis.tex").is_file()
    assert Path("pipe").is_fifo()
    assert Path("link").is_symlink()


@pytest.mark.parametrize("format", FOLDERS)
def test_a_folder_replaces_one_of_its_own_alone(here, format):
    load_text(csv_text({"a": "10"}))
    to = ("export", "toy", "--format", format, "--force", "--output")
    Path("file").touch()
    for there, rule in (("file", "is not a folder"), (".", "cannot be replaced")):
        with pytest.raises(CommandError, match=rf"^{there} {rule}\. Choose another --output"):
            call_command(*to, there)
    for _ in range(2):
        call_command(*to, "out")
    Path("out", "data", "mine.tex").touch()
    with pytest.raises(CommandError, match=r"^out holds a file .* did not write: data/mine\.tex\."):
        call_command(*to, "out")
    assert sorted(path.name for path in here.iterdir()) == ["file", "out"]


def test_what_comes_while_a_file_is_written_stays(here):
    def write():
        with replacing(here / "out") as part:
            part.touch()
            (here / "out").mkdir()

    with pytest.raises(CommandError, match="is not a regular file"):
        write()
    assert (here / "out").is_dir()


def test_a_file_that_cannot_be_written_is_named():
    target = Path("/proc/out.csv")  # where nobody makes a file
    with pytest.raises(OSError, match=str(target)), replacing(target):
        pass


def test_what_a_kill_left_goes_after_a_day(here):
    """Under another name, too: nightly backups bear the date."""
    fresh, old, other = (here / name for name in (".bandstand-a.new", ".bandstand-b.new", ".bandstand-site"))
    for folder in (fresh, old):
        folder.mkdir()
        (folder / "2026-01-01.dump").write_text("accounts")
    other.write_text("a file of a site")
    day_ago = time.time() - 25 * 60 * 60
    for path in (old, other):
        os.utime(path, (day_ago, day_ago))
    with replacing(here / "2026-01-02.dump") as part:
        prefix, suffix = UNFINISHED
        assert part.parent in here.glob(f"{prefix}*{suffix}")
        part.write_text("whole")
    assert {*here.iterdir()} == {fresh, other, here / "2026-01-02.dump"}


def test_a_hugging_face_data_set(here):
    load_text(csv_text(graded(16, 20)))
    Benchmark.objects.update(
        title='Toy: "one"',
        licence="CC BY 4.0",
        citation="@misc{toy, note = {```}}",
        url="https://example.org",
    )
    call_command("export", "toy", "--format", "hugging-face")
    card = Path("toy-hugging-face/README.md").read_text()
    _, head, text = card.split("---\n", 2)
    told = yaml.safe_load(head)
    assert told["license"] == "cc-by-4.0"
    assert told["pretty_name"] == 'Toy: "one"'
    assert told["size_categories"] == ["n<1K"]
    (files,) = told["configs"][0]["data_files"]
    table = pq.read_table(Path("toy-hugging-face") / files["path"])
    assert table.num_rows == 320
    assert all(f"| `{name}` |" in text for name in table.schema.names)
    assert "````\n@misc{toy, note = {```}}\n````" in text
    call_command("export", "toy", "--format", "hugging-face", "--force")
    assert sorted(path.name for path in here.iterdir()) == ["toy-hugging-face"]


def test_every_eval_ever(here):
    """By the schemas that its authors publish; and what they ask beyond: ids, hashes and numbers agree."""
    marks = graded(16, 20)
    rows = [
        {
            "agent": agent,
            "model": "../etc" if agent == "a00" else f"lab/{agent}",
            "task": f"t{j}",
            "outcome": "" if agent == "a01" and j == 0 else mark,
            "valid": int(agent != "a01" or j > 1),
            "n_input_tokens": 10,
            "n_output_tokens": 5 if j else "",
            "seconds_execution": 1.5,
        }
        for agent, row in marks.items()
        for j, mark in enumerate(row)
    ]
    load_text(rows_text(rows))
    board = recomputed()
    call_command("export", "toy", "--format", "every-eval-ever")
    folder = here / "toy-every-eval-ever"
    from jsonschema import Draft7Validator  # it builds dozens of grammars as it is imported

    of_file, of_line = (
        Draft7Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    n_lines, scores = 0, {}
    paths = sorted(folder.rglob("*.json"))
    assert len(paths) == 16
    for path in paths:
        told = json.loads(path.read_text())
        assert list(of_file.iter_errors(told)) == []
        beside = told["detailed_evaluation_results"]
        samples = folder / beside["file_path"]
        assert samples == path.with_name(f"{path.stem}_samples.jsonl")
        assert hashlib.sha256(samples.read_bytes()).hexdigest() == beside["checksum"]
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        assert len(lines) == beside["total_rows"]
        results = {one["evaluation_result_id"]: one for one in told["evaluation_results"]}
        for line in lines:
            assert list(of_line.iter_errors(line)) == []
            assert line["evaluation_id"] == told["evaluation_id"]
            assert line["model_id"] == told["model_info"]["id"]
            assert line.get("evaluation_result_id", next(iter(results), None)) in {*results, None}
        n_lines += len(lines)
        agent = told["model_info"]["additional_details"]["agent"]
        scores[agent] = {one["metric_config"]["metric_id"]: one["score_details"] for one in results.values()}
        if agent == "a01":
            assert beside["additional_details"] == {"n_invalid_without_value": "1"}
            assert [line["error"] for line in lines if line["sample_id"] == "t1"] == ["the harness failed"]
    assert n_lines == 319
    assert all(path.is_relative_to(folder / "data" / "toy") for path in paths)
    for entry in board.entries.all():
        full = entry.line["at"]["full"]
        assert scores[entry.name].get("bandstand.full", {}).get("score") == full["score"]
