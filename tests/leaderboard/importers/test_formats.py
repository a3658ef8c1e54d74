"""What all importers have in common: telling formats apart, asking for what is lacking, refusing in words."""

import gzip
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.importers import FORMATS, ImportOptions, base, document, sniff
from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.base import FILES, NAMED, put, text_of
from tests.toys import AS_OF, csv_text

FOREIGN = list(FILES)


# ---------------------------------------------------------------------------------------------- which format


def test_the_formats_are_those_of_the_page():
    assert list(FORMATS) == ["flat", *FOREIGN]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("of", ["file", "folder", "file under another name"])
def test_a_format_is_seen(read, tmp_path, name, of):
    path, stated = put(tmp_path / "in", name)
    if of == "file under another name" and name != "lm-eval":
        path = path.rename(path.with_name("upload-1"))
    where = path.parent if of == "folder" else path
    assert sniff(where) == name
    found = read(where, **stated)
    assert (found.format, found.flat.n_rows) == (name, FILES[name][3])


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("other", FORMATS)
def test_another_format_than_the_named_one_is_told(refusal, tmp_path, name, other):
    path, _ = put(tmp_path, name)
    if other != name:
        told = refusal(path, other)
        assert f"{path.name} is no {other} file; it looks like {name}." in told
        assert "is one of" not in told  # it is one, and not the right one


def test_a_flat_file_is_told_too(read, refusal, tmp_path):
    path = shapes.write(tmp_path / "x.csv", csv_text({"a": "10"}))
    assert "x.csv is no hal file; it looks like flat." in refusal(path, "hal")
    assert read(path).format == "flat"
    assert read(path, "flat").flat.n_rows == 2


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "[]", "<html>", "name;value\n1;2\n", '{"task": "x"}', "\x00\x01\x02", "[[[["]
)
def test_an_unknown_format_names_what_was_looked_for(refusal, tmp_path, text):
    told = refusal(shapes.write(tmp_path / "x.json", text))
    assert "x.json is of no format that is known. Looked for was:" in told
    for name, one in FORMATS.items():
        assert f"\n  {name}: {one.looked_for}" in told


def test_of_a_folder_with_two_formats_the_named_one_is_read(read, refusal, tmp_path):
    """HAL keeps the logs of inspect_ai beside its own file."""
    put(tmp_path / "in", "hal")
    put(tmp_path / "in", "inspect")
    found = read(tmp_path / "in", "inspect")
    assert (found.format, found.flat.n_rows) == ("inspect", 2)
    assert found.notes == [
        "Files that are something else, and were left alone: 1.",
        "Not read: 1 file of the format hal (x_UPLOAD.json). Read them with --format hal.",
    ]
    assert read(tmp_path / "in").format == "hal"
    assert "in is no helm file; it looks like hal and inspect." in refusal(tmp_path / "in", "helm")


def test_files_of_other_formats_in_a_folder_are_named(read, tmp_path):
    put(tmp_path / "in", "hal")
    shapes.write(tmp_path / "in" / "x.csv", csv_text({"a": "10"}))
    for number in range(30):
        report = shapes.swe_report(resolved=["a"])
        shapes.write(tmp_path / "in" / "swe" / f"m.{number:02d}.json", report)
    notes = read(tmp_path / "in").notes
    assert "Not read: 1 file of the format flat (x.csv). Name flat files one by one." in notes
    several = "at least 19 files of the format swe-bench (swe/m.00.json, swe/m.01.json, swe/m.02.json, …)"
    assert f"Not read: {several}. Read them with --format swe-bench." in notes


@pytest.mark.parametrize("name", [None, "flat"])
def test_flat_files_of_a_folder_are_named_one_by_one(refusal, tmp_path, name):
    folder = tmp_path / "in"
    shapes.write(folder / "README.md", "hello")
    for file in "ab":
        (folder / f"{file}.csv.gz").write_bytes(gzip.compress(csv_text({"a": "10"}).encode()))
    assert refusal(folder, name) == (
        "in is a folder of flat files (a.csv.gz, b.csv.gz). "
        f"Name the files one by one: manage.py load {folder}/*.csv.gz …"
    )


def test_a_folder_is_looked_into_from_its_top(read, tmp_path):
    trials = [shapes.tb_trial(f"a{i:02d}", True) for i in range(40)]
    assert read(shapes.tb_run(tmp_path / "r", trials)).format == "terminal-bench"


def test_a_folder_of_nothing_known(refusal, tmp_path):
    shapes.write(tmp_path / "in" / "a.txt", "hello")
    assert "in is of no format that is known" in refusal(tmp_path / "in")


def test_there_is_no_such_format(refusal, tmp_path):
    told = refusal(put(tmp_path, "hal")[0], "hall")
    assert "There is no format 'hall'; known are flat, hal, terminal-bench" in told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", ""),
        ("x.csv", "hello"),
        ("x.jsonl", '{"a": 1}'),
        ("x", "task,outcome\n"),
        ("x", "score;task_id\n1;2\n"),
    ],
)
def test_what_is_meant_to_be_flat_has_the_faults_of_a_flat_file(refusal, tmp_path, name, text):
    told = refusal(shapes.write(tmp_path / name, text))
    assert f"{name} has " in told
    assert "no format" not in told


# ------------------------------------------------------------------------------------------------ who ran it


def test_a_flat_file_says_itself_who_ran_it(refusal, tmp_path):
    path = shapes.write(tmp_path / "x.csv", csv_text({"a": "10"}))
    for column in ("agent", "model", "run", "version"):
        states = f"{column}: a flat file states it in each row: add or change the column {column}, and leave"
        assert f"{states} --{column} out" in refusal(path, **{column: "M"})
    assert "metric: a flat file has one outcome a row; leave --metric out" in refusal(path, metric="M")


def test_what_is_stated_counts_before_what_a_file_names(read, tmp_path):
    """The names are those of Terminal-Bench runs on its public leaderboard."""
    named = "openai/neulab/claude-sonnet-4-20250514"
    trials = [shapes.tb_trial("a", True)]
    path = shapes.tb_run(tmp_path / "run", trials, agent="mini-swe-agent", model=named)
    found = read(path, agent="Mini (Sonnet 4)", scaffold="mini-SWE-agent", model="Claude Sonnet 4")
    flat = found.flat
    assert (flat.agents, flat.scaffolds, flat.models) == (
        ("Mini (Sonnet 4)",),
        ("mini-SWE-agent",),
        ("Claude Sonnet 4",),
    )
    assert (
        'scaffold: "mini-SWE-agent" counts, as --scaffold states; 1 run names "mini-swe-agent".'
        in found.notes
    )
    assert f'model: "Claude Sonnet 4" counts, as --model states; 1 run names "{named}".' in found.notes


def test_the_same_model_may_be_stated(read, tmp_path):
    assert read(put(tmp_path, "hal")[0], model="Claude Haiku 4.5 (October 2025)").flat.n_rows == 3


def test_a_date_and_a_run_may_be_stated(read, tmp_path):
    flat = read(put(tmp_path, "hal")[0], submitted_at="2026-02", run="again").flat
    assert str(flat.submitted_at[0]) == "2026-02-01T00:00:00"
    assert flat.imprecise.all()
    assert flat.settings[0].run == "again"


def test_an_agent_has_a_name_of_its_own_if_stated(read, tmp_path):
    path, stated = put(tmp_path, "swe-bench")
    assert read(path, **stated).flat.agents == ("Loop (M)",)
    assert read(path, agent="Mine", **stated).flat.agents == ("Mine",)


def test_version_and_organisation_are_the_agents(read, tmp_path):
    path, stated = put(tmp_path, "swe-bench")
    metadata = read(path, version="1.2", organisation="Us", **stated).flat.metadata
    assert {name: metadata[name].to_pylist() for name in ("version", "organisation")} == {
        "version": ["1.2", None, None],
        "organisation": ["Us", None, None],
    }


def test_what_is_stated_keeps_the_rules_of_names(refusal, tmp_path):
    path, _ = put(tmp_path, "swe-bench")
    told = refusal(path, scaffold="Loop", model="a\nb", submitted_at="soon")
    assert 'model "' in told
    assert "control character" in told
    told = refusal(path, **NAMED | {"submitted_at": "soon"})  # of three rows
    [line] = told.split("\n")[1:]
    assert line.startswith('submitted_at "soon": a date is 2024-04-30, ')


# --------------------------------------------------------------------------------------------------- hostile


def nested(depth):
    return '{"x": ' + "[" * depth + "]" * depth + "}"


def whole(path, name):
    return path.read_text() if name != "lm-eval" else path.read_text().split("\n")[0]


def twice(text):
    """The first key of the document once more."""
    key = text.split('"')[1]
    return text.replace("{", '{"' + key + '": 1, ', 1)


DAMAGES = {
    "cut off": (lambda text: text[: len(text) // 2], "not JSON"),
    "wrong type": (lambda text: "7", "expected, not a number"),
    "nested 10,000 deep": (lambda text: nested(10_000), "deep; at most 200 are read"),
    "nested beyond Python": (lambda text: nested(500_000), "deep; at most 200 are read"),
    "a key twice": (twice, "twice"),
    "no UTF-8": (lambda text: text.encode("utf-16"), "not UTF-8"),
    "NUL": (lambda text: text[:1] + "\0" + text[1:], "not JSON"),
    "10,000 digits": (lambda text: text.replace(": ", ": " + "9" * 10_000 + ', "z": ', 1), "not JSON"),
    "empty": (lambda text: " ", ""),
    "no keys": (lambda text: "[{}]" if text[0] == "[" else "{}", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_its_name_and_the_place(refusal, tmp_path, name, damage):
    path, stated = put(tmp_path / "in", name)
    damaged, words = DAMAGES[damage]
    made = damaged(whole(path, name))
    path.write_bytes(made if isinstance(made, bytes) else made.encode())
    told = refusal(path, name, **stated)
    assert path.name in told.split("\n")[0]
    assert len(told.split("\n")) > 1
    assert words in told
    told = refusal(path.parent, name, **stated)
    assert words in told or "there is no outcome in it" in told  # other JSON lies in folders too
    assert f"(in {path.name})" in told or "there is no outcome in it" in told


@pytest.mark.parametrize("name", FOREIGN)
def test_names_that_nobody_can_read_are_faults(refusal, tmp_path, name):
    content = FILES[name][1]()
    text = text_of(name, content)
    for character in ("\\u0000", "\\ud800", "\\u202e", "\\u001b"):
        bad = text.replace('"a"', f'"a{character}b"').replace('"doc_id": 1', f'"doc_id": "a{character}b"')
        told = refusal(put(tmp_path, name, bad)[0], **FILES[name][2])
        assert told.isprintable() or set(told) - set("\n") <= {c for c in told if c.isprintable()} | {"\n"}
        assert "has a fault" in told or "faults" in told


@pytest.mark.parametrize("name", FOREIGN)
def test_too_much_is_refused_before_it_is_parsed(tmp_path, name):
    path, stated = put(tmp_path / "in", name)
    tight = replace(importers.FILE, n_bytes=100)
    for where in (path, path.parent):
        with pytest.raises(Faulty) as refused:
            importers.read(
                where, name=name, options=ImportOptions(**stated), benchmark="toy", as_of=AS_OF, limits=tight
            )
        assert "there are more than 100 bytes to read" in str(refused.value.faults[0])


def test_a_gzip_bomb_is_refused(refusal, tmp_path):
    path = tmp_path / "x_UPLOAD.json"
    text = json.dumps(shapes.hal())
    path.write_bytes(gzip.compress((text[:-1] + " " * (64 << 20) + "}").encode()))
    assert "decompression makes the file more than 250 times larger; send it uncompressed" in refusal(path)


def test_gzip_of_too_many_members_is_refused(refusal, tmp_path):
    path = tmp_path / "x_UPLOAD.json"
    path.write_bytes(gzip.compress(json.dumps(shapes.hal()).encode()) + gzip.compress(b"") * 60_000)
    assert "bytes; compress the file as one" in refusal(path)


def test_compressed_files_are_read(read, refusal, tmp_path):
    path = tmp_path / "x_UPLOAD.json.gz"
    path.write_bytes(gzip.compress(json.dumps(shapes.hal()).encode()))
    assert read(path).format == "hal"
    path.write_bytes(path.read_bytes()[:-9])
    assert "the compressed data cannot be read" in refusal(path)


def test_more_values_than_a_file_of_outcomes_has(refusal, tmp_path, monkeypatch):
    monkeypatch.setattr(document, "LEAST_VALUES", 10)
    monkeypatch.setattr(document, "BYTES_A_VALUE", 1 << 30)
    told = refusal(put(tmp_path, "hal")[0])
    assert "there are more than 10 values" in told


def test_beside_a_fault_the_same_tasks_of_other_runs_are_none(refusal, tmp_path):
    shapes.tb_run(tmp_path / "1", [shapes.tb_trial("a", True)])
    shapes.tb_run(tmp_path / "2", [shapes.tb_trial("a", "x", run="run-2")], run="run-2")
    told = refusal(tmp_path)
    assert "has a fault. Nothing was stored" in told
    assert "must be true, false or null, not a text" in told


def test_every_fault_is_told_and_all_are_counted(tmp_path):
    trials = [shapes.tb_trial(f"t{i}", "x") for i in range(1500)]
    path = shapes.write(tmp_path / "results.json", {"id": "b", "results": trials, "n_resolved": 0})
    with pytest.raises(Faulty) as refused:
        importers.read(path, name=None, options=ImportOptions(**NAMED), benchmark="toy", as_of=AS_OF)
    assert refused.value.n_faults == 1500
    assert len(refused.value.faults) == 1000
    assert "1,500 faults" in str(refused.value)
    assert refused.value.faults[999].field == "results[999].is_resolved"


# --------------------------------------------------------------------------------------------------- folders


def test_a_link_out_of_the_folder_is_not_followed(read, tmp_path):
    put(tmp_path / "in", "hal")
    put(tmp_path / "out", "hal", shapes.hal(passed=["secret"], run_id="two"))
    os.symlink(tmp_path / "out" / "x_UPLOAD.json", tmp_path / "in" / "y_UPLOAD.json")
    os.symlink(tmp_path / "out", tmp_path / "in" / "folder")
    found = read(tmp_path / "in")
    assert found.flat.tasks == ("a", "b", "c")
    assert "Symbolic links, which are not followed: 2." in found.notes


def test_a_file_that_is_beside_only_by_a_link_is_not_read(refusal, tmp_path):
    run = shapes.tb_run(tmp_path / "in", [shapes.tb_trial("a", True)])
    (run / "run_metadata.json").rename(tmp_path / "elsewhere.json")
    os.symlink(tmp_path / "elsewhere.json", run / "run_metadata.json")
    assert "does not carry agent, scaffold, model, submitted_at" in refusal(run / "results.json")


def test_what_is_no_file_in_a_folder_is_left_alone(read, tmp_path):
    put(tmp_path / "in", "hal")
    os.mkfifo(tmp_path / "in" / "y_UPLOAD.json")
    assert read(tmp_path / "in").flat.n_rows == 3


def test_a_folder_is_walked_once_and_its_files_are_counted(tmp_path, monkeypatch):
    put(tmp_path / "in" / "b", "hal")
    put(tmp_path / "in" / "b" / "c", "hal", shapes.hal(run_id="two"))
    shapes.write(tmp_path / "in" / "b.txt", "x")
    scanned, counted, scandir = [], [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (scanned.append(Path(path).name), scandir(path))[1])
    found = importers.looked_into(
        tmp_path / "in", None, progress=lambda done, total: counted.append((done, total))
    )
    assert importers.read(found, name=None, benchmark="toy", as_of=AS_OF).flat.n_rows == 5
    assert (scanned, counted[-1]) == (["in", "b", "c"], (5, None))
    assert found.paths == sorted(found.paths)


def test_a_line_feed_in_a_name_begins_no_line_of_its_own(refusal, tmp_path):
    """Who sends a folder may otherwise write lines of the list of faults."""
    folder = tmp_path / "in"
    forged = "x\n  row 1: forged_UPLOAD.json"
    shapes.write(folder / forged, shapes.hal(passed=["a\nb"], failed=["a\nb"]))
    figures = shapes.inspect_log([shapes.inspect_sample("a", value={"p\nq": 1})])
    log = shapes.write(folder / "l\n.json", figures)
    for path, n_faults in ((folder, 3), (folder / forged, 3), (log, 2)):
        told = refusal(path)
        assert len(told.split("\n")) == 1 + n_faults
        assert "U+000A" in told
    shapes.write(folder / forged, shapes.hal(benchmark_name="g\naia"))
    notes = importers.read(folder, name="hal", benchmark="toy", as_of=AS_OF).notes
    assert not any("\n" in note for note in notes)


def test_folders_have_their_caps(refusal, tmp_path, monkeypatch):
    put(tmp_path / "in", "hal")
    shapes.write(tmp_path / "in" / "/".join("abcdefghijklmnopqr") / "x", "x")
    assert f"folders lie more than 16 deep: {tmp_path / 'in'}/a/b/c/" in refusal(tmp_path / "in")
    monkeypatch.setattr(base, "MAX_ENTRIES", 1)
    assert "there are more than 1 files" in refusal(tmp_path / "in")


def test_bytes_are_reported_as_they_are_read(tmp_path):
    put(tmp_path / "in", "hal")
    put(tmp_path / "in" / "more", "hal", shapes.hal(run_id="two"))
    seen = []
    importers.read(
        tmp_path / "in",
        name=None,
        benchmark="toy",
        as_of=AS_OF,
        progress=lambda done, total: seen.append(done),
    )
    assert seen == sorted(seen)
    assert seen[-1] == sum(file.stat().st_size for file in (tmp_path / "in").rglob("*.json"))


# -------------------------------------------------------------------------------------------------- anything

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def changed(value, path, new):
    """The value with another at a place; what is None there is left out."""
    if not path:
        return new
    copy = value.copy()
    if new is None and isinstance(copy, dict):
        del copy[path[0]]
    else:
        copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@st.composite
def mutated(draw):
    name = draw(st.sampled_from(FOREIGN))
    content = FILES[name][1]()
    for _ in range(draw(st.integers(1, 3))):
        if isinstance(content, dict | list):
            path = draw(st.sampled_from(sorted(places(content), key=str)))
            content = changed(content, path, draw(JSON)) if path else content
    return name, content


def read_or_refused(path, name, stated):
    """The flat file and the notes, or the refusal; anything else is an error of the importer."""
    try:
        return importers.read(path, name=name, options=ImportOptions(**stated), benchmark="toy", as_of=AS_OF)
    except Faulty as refused:
        return refused


@pytest.mark.slow
@settings(max_examples=400, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_any_document_is_read_or_refused(case):
    name, content = case
    with tempfile.TemporaryDirectory() as folder:
        path, stated = put(Path(folder), name, content)
        found = read_or_refused(path, name, stated)
    if isinstance(found, Faulty):
        assert found.faults
        assert all(fault.rule for fault in found.faults)
        told = [str(found), *(str(value) for fault in found.faults for value in vars(fault).values())]
        "".join(told).encode()
    else:
        assert ((found.flat.outcome >= 0) & (found.flat.outcome <= 1))[found.flat.valid].all()
        assert "".join(found.notes).replace("\n", "").isprintable()


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.sampled_from(FOREIGN), st.integers(0, 10_000), st.binary(max_size=4))
def test_any_damage_to_the_bytes_is_refused_or_read(name, at, new):
    with tempfile.TemporaryDirectory() as folder:
        path, stated = put(Path(folder), name)
        data = path.read_bytes()
        at %= len(data)
        path.write_bytes(data[:at] + new + data[at + len(new) :])
        found = read_or_refused(path, None, stated)
    assert not isinstance(found, Faulty) or found.faults
