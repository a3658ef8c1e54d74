"""Logs of inspect_ai: most made by hand in the shape of its JSON, and the real thing by its own writer."""

import json
import math
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import pytest
from zstandard import ZstdCompressor

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.importers import ImportOptions
from tests.cluster import ROOT
from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import inspect_log, inspect_sample
from tests.toys import AS_OF

STATED = {"scaffold": "basic_agent"}


@pytest.fixture
def log(tmp_path):
    def make(*samples, name="log.json", **spec):
        return shapes.write(tmp_path / name, inspect_log(samples, **spec))

    return make


def real_log(samples, **spec):
    """An `EvalLog` of inspect_ai; samples are (id, epoch, scores by scorer)."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSample, EvalSpec, EvalStats
    from inspect_ai.scorer import Score

    told = {
        "run_id": "r-1",
        "created": "2026-01-05T10:00:00+00:00",
        "task": "gaia",
        "solver": "basic_agent",
        "model": "openai/gpt-4o",
        "dataset": EvalDataset(name="gaia"),
        "config": EvalConfig(),
    }
    return EvalLog(
        status="success",
        eval=EvalSpec(**told | spec),
        results=EvalResults(),
        stats=EvalStats(),
        samples=[
            EvalSample(
                id=name,
                epoch=epoch,
                input="?",
                target="!",
                scores={scorer: Score(value=value) for scorer, value in scores.items()},
                uuid=f"{name}-{epoch}",
            )
            for name, epoch, scores in samples
        ],
    )


BY_HAND = [
    ("a", 1, {"match": "C"}),
    ("a", 2, {"match": "I"}),
    ("b", 1, {"match": "P"}),
    ("b", 2, {"match": "N"}),
    ("c", 1, {"match": 0.25}),
    ("c", 2, {"match": math.nan}),
]
EXPECTED = {("a", 1): 1, ("a", 2): 0, ("b", 1): 0.5, ("b", 2): 0, ("c", 1): 0.25, ("c", 2): None}


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_what_inspect_writes_itself(read, outcomes, tmp_path, ending):
    from inspect_ai.log import write_eval_log

    file = tmp_path / f"log.{ending}"
    write_eval_log(real_log(BY_HAND), str(file))
    assert outcomes(file) == EXPECTED
    found = read(file)
    flat = found.flat
    assert found.format == "inspect"
    assert (flat.agents, flat.scaffolds, flat.models) == (
        ("basic_agent (openai/gpt-4o)",),
        ("basic_agent",),
        ("openai/gpt-4o",),
    )
    assert str(flat.submitted_at[0]) == "2026-01-05T10:00:00"
    assert flat.settings[0].run == "r-1"


def test_a_sample_that_inspect_invalidated(outcomes, tmp_path):
    """Summaries do not say so; the samples do."""
    from inspect_ai.log import ProvenanceData, invalidate_samples, write_eval_log

    file = tmp_path / "log.eval"
    told = invalidate_samples(real_log(BY_HAND), ["a-1"], ProvenanceData(author="x", reason="y"))
    write_eval_log(told, str(file))
    assert outcomes(file) == EXPECTED | {("a", 1): None}


def test_the_shape_by_hand_is_the_one_that_inspect_reads(log):
    from inspect_ai.log import read_eval_log

    file = log(inspect_sample("a", value="C"), inspect_sample("b", scores={"x": {"value": 0.5}}))
    assert [list(sample.scores) for sample in read_eval_log(str(file)).samples] == [["match"], ["x"]]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        *[("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (False, 0), (1, 1), (0.25, 0.25)],
        *[("yes", 1), ("No", 0), ("TRUE", 1), ("0.5", 0.5), (math.nan, None), (None, None)],
    ],
)
def test_values_of_scores(outcomes, log, value, outcome):
    assert outcomes(log(inspect_sample("a", value=value))) == {("a", 1): outcome}


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("correct", "a score is C, I, P, N"),
        ([1, 0], "a score is C, I, P, N"),
        ({"x": 1, "y": 0}, "the score has several figures; --metric SCORER/FIGURE names one of x, y"),
        (1.5, "an outcome is a number from 0 to 1"),
        (math.inf, "an outcome is a number from 0 to 1"),
    ],
)
def test_what_is_no_score_is_a_fault_and_not_0(refusal, log, value, rule):
    told = refusal(log(inspect_sample("a", value=value)))
    assert rule in told
    assert "samples[0].scores" in told


def test_a_figure_of_a_score(outcomes, log):
    file = log(inspect_sample("a", scores={"grader": {"value": {"x": 1, "y": 0.5}}}))
    assert outcomes(file, metric="grader/y") == {("a", 1): 0.5}


def test_a_sample_without_score_is_invalid(read, log):
    broke = inspect_sample("a", scores={}) | {"error": {"message": "x"}}
    flat = read(log(broke, inspect_sample("b", scores={}), inspect_sample("c", value="C"))).flat
    assert flat.valid.tolist() == [False, False, True]
    assert flat.metadata["reason"].to_pylist() == ["error", "not scored", None]


def test_of_several_scorers_the_first_counts_or_the_headline_or_the_one_stated(read, outcomes, log):
    sample = inspect_sample("a", scores={"first": {"value": 1}, "second": {"value": 0}})
    assert outcomes(log(sample)) == {("a", 1): 1}
    assert read(log(sample)).notes == [
        "log.json: of the scores first, second, first counts; choose another with --metric."
    ]
    assert outcomes(log(sample, headline_metric={"scorer": "second"})) == {("a", 1): 0}
    assert outcomes(log(sample), metric="second") == {("a", 1): 0}


def test_old_logs_have_one_score(outcomes, log):
    sample = inspect_sample("a") | {"score": {"value": "C"}}
    del sample["scores"]
    assert outcomes(log(sample)) == {("a", 1): 1}


def test_numbers_are_names_of_tasks(outcomes, log):
    assert outcomes(log(inspect_sample(7, value="C"))) == {("7", 1): 1}


def test_temperature_and_tokens(read, log):
    usage = {"m": {"input_tokens": 3, "input_tokens_cache_read": 4, "output_tokens": 5, "total_cost": 0.5}}
    flat = read(
        log(inspect_sample("a", value="C", model_usage=usage), model_generate_config={"temperature": 0.7})
    ).flat
    assert flat.settings[0].temperature == 0.7
    figures = {name: values.tolist() for name, values in flat.measured.items()}
    assert figures == {"n_input_tokens": [7], "n_output_tokens": [5], "cost_usd": [0.5]}


def test_logs_of_two_tasks_are_refused(refusal, log, tmp_path):
    log(inspect_sample("a", value="C"))
    log(inspect_sample("a", value="C"), name="other.json", task="gsm8k")
    assert 'eval.task "gsm8k": log.json is of gaia; load one task at a time' in refusal(tmp_path)


def test_logs_of_two_tasks_are_refused_also_as_two_paths(log):
    first = log(inspect_sample("a", value="C"))
    other = log(inspect_sample("a", value="C"), name="other.json", task="gsm8k")
    given = {"name": None, "options": ImportOptions(), "benchmark": "toy", "as_of": AS_OF}
    with pytest.raises(Faulty) as refused:
        importers.read(first, other, **given)
    assert 'eval.task "gsm8k": ' in str(refused.value.faults[0])


def test_a_retry_repeats_what_was_done(read, log, tmp_path):
    done = inspect_sample("a", value="C", uuid="u-1")
    log(done, name="1.json", status="error")
    log(done, inspect_sample("b", value="I", uuid="u-2"), name="2.json", run_id="r-2")
    found = read(tmp_path)
    assert found.flat.n_rows == 2
    assert found.notes == ["1.json: the evaluation did not come to its end (error)."]


def test_a_model_may_be_stated_without_its_provider(read, log):
    assert read(log(inspect_sample("a", value="C")), model="gpt-4o").flat.models == ("gpt-4o",)


def test_no_model_is_asked_for(refusal, log):
    told = refusal(log(inspect_sample("a", value="C"), model="none/none", solver=None))
    assert "log.json does not carry agent, scaffold, model; state what is lacking" in told


# --------------------------------------------------------------------------------------------- archives


def archive(path, members, *, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content if isinstance(content, bytes | str) else json.dumps(content))
    return path


HEADER = {key: value for key, value in inspect_log([]).items() if key != "samples"}
START = {"version": 2, "eval": HEADER["eval"], "plan": HEADER["plan"]}


def test_a_log_that_broke_off_has_its_samples(read, outcomes, tmp_path):
    samples = {f"samples/{name}_epoch_1.json": inspect_sample(name, value="C") for name in "ab"}
    file = archive(tmp_path / "x.eval", {"_journal/start.json": START} | samples)
    assert outcomes(file) == {("a", 1): 1, ("b", 1): 1}
    assert "x.eval: the evaluation did not come to its end (no header.json)." in read(file).notes


def test_of_two_summaries_the_last_holds(outcomes, tmp_path):
    summaries = [inspect_sample("a", value=mark) for mark in "IC"]
    assert outcomes(archive(tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": summaries})) == {
        ("a", 1): 1
    }


READ_WITH = """
import json, re, sys
from importlib.metadata import packages_distributions

locked, path = set(sys.argv[1].split(",")), sys.argv[2]
absent = {
    module
    for module, names in packages_distributions().items()
    if not {re.sub("[-_.]+", "-", name).lower() for name in names} & locked
}

class Locked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Locked())
from datetime import UTC, datetime
from pathlib import Path
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.importers import ImportOptions
found = importers.read(
    Path(path), name=None, options=ImportOptions(), benchmark="toy", as_of=datetime.now(UTC)
)
flat = found.flat
outcomes = [float(one) if valid else None for one, valid in zip(flat.outcome, flat.valid)]
print(json.dumps([found.format, outcomes]))
"""


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-image.txt"])
def test_what_inspect_writes_itself_is_read_with_what_a_lock_installs(tmp_path, lock):
    from inspect_ai.log import write_eval_log

    file = tmp_path / "log.eval"
    write_eval_log(real_log(BY_HAND), str(file))
    with zipfile.ZipFile(file) as archive:
        assert {info.compress_type for info in archive.infolist()} == {93}  # Zstandard
    locked = ",".join(re.findall(r"^([a-z0-9._-]+)==", (ROOT / lock).read_text(), re.MULTILINE))
    assert "inspect-ai" not in locked
    command = [sys.executable, "-c", READ_WITH, locked, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["inspect", [1, 0, 0.5, 0, 0.25, None]]


def test_a_bomb_is_refused_before_it_is_opened(refusal, tmp_path):
    zeros = b"[" + b" " * (48 << 20) + b"]"
    file = archive(tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": zeros})
    assert file.stat().st_size < 1 << 17
    assert "decompression makes the file more than 250 times larger; send it uncompressed" in refusal(file)


def test_a_member_that_lies_about_its_size(refusal, tmp_path):
    """The directory says 10 bytes; no more are read, and the sum of them is wrong."""
    file = archive(tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": "[" + " " * 100_000 + "]"})
    data = file.read_bytes()
    at = data.rindex(b"PK\x01\x02")
    file.write_bytes(data[: at + 24] + struct.pack("<I", 10) + data[at + 28 :])
    assert "summaries.json: " in refusal(file)


def zstandard(path, packed, *, n_bytes, crc=0):
    """An archive whose summaries are compressed by Zstandard, and state what is said of them."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(HEADER))
        file.writestr("summaries.json", packed)
        info = file.getinfo("summaries.json")
        info.compress_type, info.file_size, info.CRC = 93, n_bytes, crc
    return path


def test_no_more_of_zstandard_is_decompressed_than_is_stated(refusal, tmp_path):
    """A few KB that hold 256 MiB and state 8."""
    text = b"[" + b" " * (256 << 20) + b"]"
    file = zstandard(tmp_path / "x.eval", ZstdCompressor().compress(text), n_bytes=8 << 20)
    tracemalloc.start()
    try:
        told = refusal(file)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert "summaries.json: cannot be read: it holds more than the 8,388,608 bytes that it states" in told


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:1] + data, lambda data: data])
def test_zstandard_that_is_damaged_or_has_another_sum(refusal, tmp_path, damage):
    text = json.dumps([inspect_sample(f"{number}", value="C") for number in range(99)]).encode()
    packed = damage(ZstdCompressor().compress(text))
    told = refusal(zstandard(tmp_path / "x.eval", packed, n_bytes=len(text), crc=1))
    assert "summaries.json: cannot be read: " in told


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"readme.txt": "x"}, "the archive has no header.json"),
        ({"header.json": "{"}, "header.json: the text is not JSON"),
        ({"header.json": "9" * 5000}, "header.json: the text is not JSON: a number has too many digits"),
        ({"header.json": "[]"}, "an object is expected, not a list"),
        ({"header.json": {"eval": 7}}, "eval: an object is expected, not a number"),
        ({"header.json": HEADER, "summaries.json": {}}, "summaries.json: a list is expected, not an object"),
        ({"header.json": HEADER, "summaries.json": [7]}, "summaries.json[0]: an object is expected"),
        ({"header.json": HEADER}, "there is no outcome in it"),
    ],
)
def test_archives_that_are_no_logs(refusal, tmp_path, members, told):
    assert told.removeprefix("header.json: ") in refusal(archive(tmp_path / "x.eval", members))


@pytest.mark.parametrize(
    ("at", "byte", "told"),
    [
        (6, 108, "the archive cannot be read: zip file version"),  # the version that is needed
        (8, 1, "header.json: is encrypted"),
        (10, 12, "header.json: is compressed by method 12, which Inspect never uses"),
        (10, 14, "header.json: is compressed by method 14, which Inspect never uses"),
        (47, 0xFF, "the archive cannot be read: 'utf-8' codec"),  # a name that says it is UTF-8
    ],
)
def test_an_archive_whose_table_of_contents_lies(refusal, tmp_path, at, byte, told):
    file = archive(tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": []})
    content = bytearray(file.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + at] = byte
    if byte == 0xFF:
        content[entry + 9] |= 8
    file.write_bytes(content)
    assert told in refusal(file)


@pytest.mark.parametrize("name", ["header.json", "summaries.json"])
def test_a_member_whose_own_head_lies(refusal, tmp_path, name):
    """Its name there says that it is UTF-8, and is not."""
    file = archive(tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": []})
    content = bytearray(file.read_bytes())
    named = content.index(name.encode())
    content[named] = 0xFF
    content[named - 30 + 7] |= 8
    file.write_bytes(content)
    assert f"{name}: cannot be read: 'utf-8' codec" in refusal(file)


def test_an_archive_that_is_cut_off(refusal, tmp_path):
    file = archive(
        tmp_path / "x.eval", {"header.json": HEADER, "summaries.json": [inspect_sample("a", value="C")]}
    )
    file.write_bytes(file.read_bytes()[:-40])
    assert "the archive cannot be read" in refusal(file)
