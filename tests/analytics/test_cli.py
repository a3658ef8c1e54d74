"""``python -m analytics``: keys, values of reference files, refusals, and what a reader sees."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.cli import main
from analytics.trials import expected_maximum

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
CROSSED = (
    "item + prompt + item:prompt + temp:item + prompt:temp + judge:item + prompt:judge "
    "+ prompt:item:judge:temp"
)
FACETS = "N=item_id,V=variant_id,M=judge_model,H=temperature"
SAFETY = "N=141,V=5,M=3,H=3,R=8"


def flat(path, rows, extra=""):
    path.write_text("\n".join([HEAD + extra, *rows]) + "\n")
    return path


def repeated(path, *, n_agents=3, n_tasks=40, n_trials=3, seed=5, extra="", tail=""):
    """Agents of one scaffold each whose trials are tosses of P(agent, task)."""
    rng = np.random.default_rng(seed)
    chance = rng.random((n_agents, n_tasks))
    rows = [
        f"B,a{i},s{i // 2},m,2026-01-0{1 + i},t{j:02d},{t},{int(rng.random() < chance[i, j])}{tail}"
        for i in range(n_agents)
        for j in range(n_tasks)
        for t in range(1, n_trials + 1)
    ]
    return flat(path, rows, extra)


# ------------------------------------------------------------------------------------------------- variance


def test_variance_of_a_balanced_crossed_design(answer, real_data):
    exact = json.loads((real_data / "reference" / "crossed141.exact.json").read_text())
    lmer = json.loads((real_data / "reference" / "crossed141.lmer-tight.json").read_text())
    result = answer(
        "variance",
        real_data / "reference" / "crossed141.csv.gz",
        *("--outcome", "score", "--random", CROSSED, "--fixed", "judge + temp"),
    )
    assert set(result) >= {"components", "residual", "fixed", "criterion", "boundary", "method", "seconds"}
    by_factors = {frozenset(name.split(":")): value for name, value in result["components"].items()}
    for name, value in exact["vcov"].items():
        mine = result["residual"] if name == "Residual" else by_factors[frozenset(name.split(":"))]
        assert mine == pytest.approx(value, rel=1e-8)
    assert result["criterion"] == pytest.approx(exact["REMLcrit"], abs=1e-6)
    assert result["boundary"] == []
    assert list(result["fixed"]) == ["(Intercept)", "judge[j2]", "judge[j3]", "temp[t2]", "temp[t3]"]
    assert list(result["fixed"].values()) == pytest.approx(
        [lmer["fixef"][f"{name}"] for name in ("(Intercept)", "judgej2", "judgej3", "tempt2", "tempt3")],
        abs=1e-7,
    )
    assert 0 < result["seconds"] < 5


def test_a_column_of_numbers_is_a_factor_and_no_other_column_is_read(answer, tmp_path):
    rows = [f"{g},{y},broken \N{SNOWMAN}" for g, ys in ((10, (1, 2)), (2, (4, 5)), (7, (9, 7))) for y in ys]
    path = tmp_path / "a.csv"
    path.write_text("group,y,note\n" + "\n".join(rows) + "\n")
    result = answer("variance", path, "--outcome", "y", "--random", "group")
    # One-way, n = 2: MSW = (½ + ½ + 2)/3 = 1; means 1.5, 4.5, 8: MSB = 2·(21.1667/2) = 21.1667.
    assert result["residual"] == pytest.approx(1.0)
    assert result["components"] == pytest.approx({"group": (21.0 + 1 / 6 - 1.0) / 2})


def test_the_table_of_components(text, real_data):
    out = text(
        "variance",
        real_data / "reference" / "boundary30.csv.gz",
        *("--outcome", "score", "--random", CROSSED, "--fixed", "judge + temp"),
    )
    assert "estimated as 0  temp:item, prompt:temp" in out
    assert "share" in out.splitlines()[0]


def test_refusals_of_variance(refusal, real_data, tmp_path):
    pastes = real_data / "reference" / "Pastes.csv.gz"
    there = "strength, batch, cask, sample"
    assert f"unknown column 'colour'. Columns: {there}" in refusal(
        "variance", pastes, "--outcome", "colour", "--random", "batch"
    )
    missing = refusal("variance", pastes, "--outcome", "strength", "--random", "batch + colour")
    assert "unknown column 'colour'" in missing
    assert all(name in missing for name in there.split(", "))
    assert "row 1: batch is 'A', not a finite number" in refusal(
        "variance", pastes, "--outcome", "batch", "--random", "sample"
    )
    assert "file not found" in refusal("variance", tmp_path / "none.csv", "--outcome", "y", "--random", "x")
    cells = tmp_path / "cells.csv"
    cells.write_text(
        "a,b,y\n" + "\n".join(f"{a},{b},{a * b + a}" for a in (1, 2, 4) for b in (1, 3, 5)) + "\n"
    )
    assert "a:b: one row for each of its 9 levels" in refusal(
        "variance", cells, "--outcome", "y", "--random", "a + a:b"
    )
    assert "--random" in refusal("variance", pastes, "--outcome", "strength")
    cells.write_text("a;y\nx;1\n")
    assert "has one column; the header uses semicolons, use commas" in refusal(
        "variance", cells, "--outcome", "y", "--random", "a"
    )
    cells.write_text('{"a": "x", "y": 1}\n')
    assert "cells.csv is JSON" in refusal("variance", cells, "--outcome", "y", "--random", "a")
    cells.write_text("a,y\nx,1\n,2\nz,3\n")
    assert "row 2: column a is empty" in refusal("variance", cells, "--outcome", "y", "--random", "a")


def test_what_is_no_csv_is_refused_in_the_words_of_the_flat_file(refusal, tmp_path):
    formula = ("--outcome", "y", "--random", "a")
    path = tmp_path / "a.csv"
    table = pa.table({"a": ["x", "x", "z"], "y": [1.0, 2.0, 3.0]})
    pq.write_table(table, path)
    assert refusal("variance", path, *formula).endswith("a.csv is Parquet. Give a CSV with a header\n")
    text = "a,y\nx,1\nx,2\nz,3\n"
    for content, told in (
        (text.encode("utf-16"), "the file is UTF-16 text; save it as UTF-8"),
        (b"PK\x03\x04" + bytes(99), "the file is a ZIP archive or an Excel workbook; save the sheet as CSV"),
        (gzip.compress(text.encode()), "the file is compressed by gzip. Rename it so that it ends with .gz"),
        (b"", "the file is empty"),
    ):
        path.write_bytes(content)
        assert refusal("variance", path, *formula).endswith(f"a.csv: {told}\n")
        packed = tmp_path / "b.csv.gz"
        packed.write_bytes(gzip.compress(content))
        refusal("variance", packed, *formula)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert main(["variance", str(path), *formula]) == 0


def test_rows_that_are_not_valid_are_missing_and_no_failures(answer, text, refusal, tmp_path):
    """One-way as above, among rows of which the harness failed: with an outcome, without, without a label."""
    rows = ["10,1,1", "10,2,", "2,0,0", "2,4,true", "2,5,TRUE", "7,,false", "7,9,1", ",x,0", "7,7,1"]
    path = tmp_path / "a.csv"
    formula = ("--outcome", "y", "--random", "group")

    def write(rows):
        path.write_text("group,y,valid\n" + "\n".join(rows) + "\n")

    write(rows)
    result = answer("variance", path, *formula)
    assert (result["n_rows"], result["n_invalid"]) == (6, 3)
    assert result["residual"] == pytest.approx(1.0)
    assert result["components"] == pytest.approx({"group": (21.0 + 1 / 6 - 1.0) / 2})
    assert "rows left out, not valid  3" in text("variance", path, *formula)
    write(["a,1,1", "a,2,0", "b,3,1", "b,4,1"])
    named = answer("variance", path, "--outcome", "valid", "--random", "group")
    assert (named["n_rows"], named["n_invalid"], named["fixed"]) == (4, 0, {"(Intercept)": 0.75})


def test_what_valid_may_not_be(refusal, tmp_path):
    path = tmp_path / "a.csv"
    formula = ("--outcome", "y", "--random", "group")
    path.write_text("group,y,valid\na,1,1\na,2,maybe\n")
    assert "row 2: valid is 'maybe'; valid is 1, 0, true or false, or empty for true" in refusal(
        "variance", path, *formula
    )
    path.write_text("group,y,valid\na,1,0\na,2,0\n")
    assert "valid is 0 in every row, so no outcome is left" in refusal("variance", path, *formula)
    path.write_text("group,y,valid\na,1,0\na,,1\n")
    assert "row 2: y is '', not a finite number" in refusal("variance", path, *formula)


def test_variance_of_a_flat_file_takes_the_valid_rows_alone(answer, real_data):
    result = answer(
        "variance",
        real_data / "terminal_bench_core_011.csv.gz",
        *("--outcome", "outcome", "--random", "agent + task + agent:task"),
    )
    assert (result["n_rows"], result["n_invalid"]) == (4782, 418)


def test_the_harness_of_any_csv_takes_its_column_valid(answer, refusal, tmp_path):
    rows = [f"m{i},t{j:02d},r{k},{(i + j + k) % 2},1" for i in range(3) for j in range(12) for k in range(3)]
    rows[7] = "m0,t02,r1,,0"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["model,task,run,outcome,valid", *rows]) + "\n")
    named = ("--columns", "model=model,task=task,run=run,outcome=outcome", "--draws", "20")
    result = answer("harness", path, *named)
    assert result["coverage"] == pytest.approx(107 / 108)
    assert result == answer("harness", path, "--columns", f"{named[1]},valid=valid", *named[2:])
    path.write_text("\n".join(["model,task,run,outcome,valid", "m,t,r,,0", "m,t,s,x,1"]) + "\n")
    for columns in (named[1], f"{named[1]},valid=valid"):
        assert "row 2: outcome is 'x', not a finite number" in refusal("harness", path, "--columns", columns)


def test_variance_of_outcomes_takes_the_model_of_a_board(answer, text, tmp_path):
    path = repeated(tmp_path / "a.csv")
    mine = answer("variance", path)
    assert mine["model"] == "agent + task + agent:task"
    named = answer("variance", path, "--outcome", "outcome", "--random", mine["model"])
    by_name = {one["name"]: one["variance"] for one in mine["components"]}
    assert by_name == pytest.approx(named["components"] | {"Residual": named["residual"]})
    assert mine["criterion"] == pytest.approx(named["criterion"])
    told = text("variance", path)
    assert "that of a board: agent + task + agent:task (--random and --outcome choose another)" in told
    assert "some tasks suit some agents" in told


def test_variance_reads_a_table_of_three_columns(answer, text, tmp_path):
    path = tmp_path / "results.csv"
    rows = [f"a{i},t{j},{'pass' if (i * j) % 3 else 'fail'}" for i in range(4) for j in range(6)]
    path.write_text("\n".join(["agent,task,resolved?", *rows]) + "\n")
    mine = answer("variance", path, "--column", "outcome=resolved?")
    assert (mine["model"], mine["n_rows"], mine["levels"]["task"]) == ("agent + task", 24, 6)


def test_options_of_another_model_need_its_terms(refusal, tmp_path):
    path = repeated(tmp_path / "a.csv")
    for option in (["--outcome", "y"], ["--fixed", "agent"], ["--logit"], ["--by", "judge"]):
        assert f"{option[0]} also needs --random TERMS" in refusal("variance", path, *option)
    assert "--random also needs --outcome COLUMN" in refusal("variance", path, "--random", "agent")
    one = flat(tmp_path / "one.csv", ["B,a,s,m,2026-01-01,t,1,1"])
    assert "no variance components: " in refusal("variance", one)
    assert "no variance components: " in refusal("dstudy", one)


# --------------------------------------------------------------------------------------------------- dstudy


def test_dstudy_goes_on_from_outcomes_and_from_a_stored_study(answer, text, tmp_path):
    path = repeated(tmp_path / "a.csv")
    study = answer("variance", path)
    parts = {one["name"]: one["variance"] for one in study["components"]}
    # (σ²_task + σ²_agent:task)/N + σ²/(N·R), for one agent
    expected = (parts["task"] + parts["agent:task"]) / 20 + parts["Residual"] / 100
    stored = tmp_path / "study.json"
    stored.write_text(json.dumps(study))
    for file in (path, stored):
        found = answer("dstudy", file, "--design", "N=20,R=5")
        assert found["variance"] == pytest.approx(expected)
        assert sum(found["shares"].values()) == pytest.approx(1)
        assert answer("dstudy", file)["design"] == {"N": 40, "V": 1, "M": 1, "H": 1, "R": 1}
    shown = text("dstudy", path, "--design", "R=2")
    assert "that of a board: agent + task + agent:task" in shown
    assert "40 tasks × 1 prompt × 1 judge × 1 temperature × 2 trials" in shown
    assert ("item" in shown, "replicate" in shown, "at most" in shown) == (False, False, False)
    once = repeated(tmp_path / "once.csv", n_trials=1)
    assert [
        "standard error, at most" in text("dstudy", once, "--estimand", estimand)
        for estimand in ("finite", "domain")
    ] == [True, False]


def test_dstudy_says_what_a_file_lacks(refusal, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("component,variance\nitem,0.02\n")
    assert "a.csv has variance components: state --facets N=COLUMN,… and --design" in refusal("dstudy", path)
    assert "--facets also needs --design" in refusal("dstudy", path, "--facets", "N=item")
    path.write_text(json.dumps({"components": {"item": 0.02}, "residual": 0.1}))
    assert "a.csv is not a study of a board" in refusal("dstudy", path)
    path.write_text(json.dumps({"available": False, "reason": "one agent", "levels": {}}))
    assert "no variance components: one agent" in refusal("dstudy", path)
    path.write_text("agent,task,outcome\na,t,1\n")
    assert "--categories also needs --facets" in refusal("dstudy", path, "--categories", "sampled")


def test_sensitivities_included(answer, real_data):
    components = real_data / "published" / "tee_safety_components.csv"
    result = answer("dstudy", components, "--facets", FACETS, "--design", SAFETY, "--sensitivity", "include")
    assert result["variance"] == pytest.approx(3.54e-4, abs=5e-7)
    assert set(result) == {"variance", "se", "shares"}
    assert result["shares"]["judge_model (fixed)"] == pytest.approx(0.438, abs=5e-4)
    finite = answer("dstudy", components, "--facets", FACETS, "--design", SAFETY, "--estimand", "finite")
    assert finite["shares"]["item_id"] == finite["shares"]["item_id:judge_model"] == 0.0
    sampled = answer(
        "dstudy", components, "--facets", FACETS, "--design", f"{SAFETY},C=12", "--categories", "sampled"
    )
    assert sampled["variance"] > result["variance"]


def test_the_projection_as_text(text, real_data):
    out = text(
        "dstudy",
        real_data / "published" / "tee_safety_components.csv",
        *("--facets", FACETS, "--design", SAFETY),
    )
    assert "141 items × 5 prompts × 3 judges × 3 temperatures × 8 replicates" in out
    assert "single judge" in out
    assert "+105.5%" in out


def test_one_level_of_a_facet_is_no_plural(text, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("component,variance\nitem,0.08\nprompt,0.004\nitem:prompt,0.01\nResidual,0.11\n")
    for design, result in (
        ("N=120,V=1,R=1", "120 items × 1 prompt × 1 replicate\n"),
        ("N=1,V=3,R=2", "1 item × 3 prompts × 2 replicates\n"),
    ):
        assert result in text("dstudy", path, "--facets", "N=item,V=prompt", "--design", design)


def test_icc_says_that_a_board_of_several_conditions_has_none(text, tmp_path):
    rows = [
        f"B,a{i},s,m,,t{j:02d},{trial},{(i * j + trial) % 2},{prompt}"
        for i in range(3)
        for j in range(12)
        for trial in (1, 2)
        for prompt in ("plain", "terse")
    ]
    result = "a board has an ICC column for one condition only; here each condition has a row"
    out = text("icc", flat(tmp_path / "a.csv", rows, ",prompt_variant"))
    assert result in out
    assert "n₀ trials a task" in out
    alone = [row for row in rows if row.endswith("plain")]
    assert result not in text("icc", flat(tmp_path / "b.csv", alone, ",prompt_variant"))


def test_refusals_of_dstudy(refusal, real_data, tmp_path):
    components = real_data / "published" / "tee_safety_components.csv"
    assert "H" in refusal("dstudy", components, "--facets", FACETS, "--design", "N=141,V=5,M=3,R=8")
    assert "whole number" in refusal("dstudy", components, "--facets", FACETS, "--design", "N=0")
    assert "'judge_model' is none of" in refusal(
        "dstudy", components, "--facets", "N=item_id", "--design", SAFETY
    )
    assert "none.csv" in refusal("dstudy", tmp_path / "none.csv", "--facets", FACETS, "--design", SAFETY)
    assert "invalid choice" in refusal(
        "dstudy", components, "--facets", FACETS, "--design", SAFETY, "--estimand", "all"
    )


# ------------------------------------------------------------------------------------------------------ icc


def test_icc_of_every_agent(answer, real_data, real_rows):
    result = answer("icc", real_data / "terminal_bench_core_011.csv.gz")
    assert set(result) == {"agents", "convergence", "copied"}
    agents = {line["agent"]: line for line in result["agents"] if line["category"] is None}
    rows = [row for row in real_rows("terminal_bench_core_011") if row["valid"] == "1"]
    assert sorted(agents) == sorted({row["agent"] for row in rows})
    common = set.intersection(*({row["task"] for row in rows if row["agent"] == name} for name in agents))
    for line in agents.values():
        assert (line["compared"], line["condition"], line["n_tasks"]) == (True, "", len(common))
        assert line["accuracy"]["lower"] < line["mean"] < line["accuracy"]["upper"]


def test_icc_with_one_trial_has_reasons_and_no_number(answer, text, real_data):
    result = answer("icc", real_data / "swebench_verified_2023_2025.csv.gz")
    assert {line["icc"] for line in result["agents"]} == {None}
    assert all("one trial per task" in line["notes"]["icc"] for line in result["agents"])
    shown = text("icc", real_data / "hal_gaia.csv.gz")
    assert "not measured:" in shown
    assert "one trial per" in shown
    assert "compared with a board  a board computes ICC over all tasks of an agent" in shown


def test_icc_without_a_valid_outcome_is_refused(refusal, tmp_path):
    rows = [f"B,a,s,m,,t{j},1,0,0" for j in range(12)]
    assert "the file has no valid outcome" in refusal("icc", flat(tmp_path / "a.csv", rows, ",valid"))


def test_icc_by_category_with_trials_needed_and_copies(answer, tmp_path):
    rng = np.random.default_rng(3)
    chance = rng.random(120)
    rows = []
    for agent in ("copied", "honest"):
        first = (rng.random(120) < chance).astype(int)
        for trial in range(1, 13):
            drawn = first if agent == "copied" else (rng.random(120) < chance).astype(int)
            rows += [f"B,{agent},s,m,,t{j:03d},{trial},{y},c{j % 2}" for j, y in enumerate(drawn)]
    result = answer("icc", flat(tmp_path / "a.csv", rows, ",category"))
    lines = {(line["agent"], line["category"]): line for line in result["agents"]}
    assert set(lines) == {(agent, c) for agent in ("copied", "honest") for c in (None, "c0", "c1")}
    assert lines["honest", "c0"]["n_tasks"] == 60
    assert list(result["copied"]) == ["copied"]
    assert "not independent" in lines["copied", None]["notes"]["icc"]
    (needed,) = result["convergence"]
    assert (needed["agent"], needed["condition"]) == ("honest", "")
    assert needed["trials_needed"] in (2, 4, None)
    assert [step["n_trials"] for step in needed["steps"]][:3] == [2, 4, 8]


# -------------------------------------------------------------------------------------------------- harness


HARNESS28 = "model=model,task=task,run=run,outcome=score"


def test_the_harness_chapters_tensor(answer, real_data):
    path = real_data / "reference" / "harness28.csv.gz"
    result = answer("harness", path, "--columns", f"{HARNESS28},covered=valid_mask", "--draws", "200")
    # STATISTICS §8: the listing of the chapter as printed.
    assert result["components"]["variances"]["model"] == pytest.approx(0.034711, abs=1e-6)
    assert result["reliability"] == pytest.approx(0.954377, abs=1e-6)
    assert result["discriminability"] == pytest.approx(0.938831, abs=1e-6)
    assert result["coverage"] == pytest.approx(0.9832, abs=1e-9)
    assert result["mdes"]["published"] == pytest.approx(0.046710, abs=1e-6)
    assert result["metadata"]["commit hash"] == "not stated"
    assert result["notes"]["cost"] == "not measured: no seconds and no price were given"


def test_an_outcome_that_is_not_valid_is_missing(answer, real_data):
    path = real_data / "reference" / "harness28.csv.gz"
    result = answer("harness", path, "--columns", f"{HARNESS28},valid=valid_mask", "--draws", "50")
    assert result["coverage"] == pytest.approx(0.9832, abs=1e-9)
    assert result["components"]["method"] == "reml"
    assert "no score" in result["notes"]["reliability_bootstrap"]


def test_the_harness_of_a_flat_file(answer, text, tmp_path):
    path = repeated(tmp_path / "a.csv", n_agents=4)
    result = answer("harness", path, "--metadata", "hardware=2 cores", "--draws", "50")
    assert (result["n_models"], result["n_tasks"], result["n_runs"]) == (4, 40, 3)
    assert result["coverage"] == 1.0
    assert result["metadata"]["hardware"] == "2 cores"
    assert "4 models x 40 tasks x 3 runs" in text("harness", path, "--draws", "50")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{trial},1,1", "no detectable difference: all scores are alike"),
        ("{trial},0,1", "no detectable difference: all scores are alike"),
        ("{trial},,0", "model 'a0' has 0 scores"),
    ],
)
def test_the_harness_of_outcomes_that_are_all_alike(text, tmp_path, row, reason):
    """All passed, all failed, none valid: nothing is split, and nothing breaks."""
    rows = [
        f"B,a{i},s,m,,t{j:02d}," + row.format(trial=trial)
        for i in range(4)
        for j in range(12)
        for trial in (1, 2)
    ]
    shown = text("harness", flat(tmp_path / "a.csv", rows, ",valid"), "--draws", "20")
    assert "4 models x 12 tasks x 2 runs" in shown
    assert reason in shown
    assert "fitness F               not measured" in shown
    assert "detectable difference  " not in shown


def test_one_run_leaves_reasons(answer, tmp_path):
    result = answer("harness", repeated(tmp_path / "a.csv", n_trials=1), "--draws", "50")
    assert result["reliability"] is None
    assert "one run" in result["notes"]["components"]


def test_refusals_of_harness(refusal, real_data, tmp_path):
    path = real_data / "reference" / "harness28.csv.gz"
    lacking = refusal("harness", path, "--columns", "model=model,task=task,run=run")
    assert "--columns lacks outcome=COLUMN" in lacking
    assert "unknown column 'colour'. Columns: model, task, run" in refusal(
        "harness", path, "--columns", "model=model,task=task,run=run,outcome=colour"
    )
    other = refusal("harness", path, "--columns", "agent=model")
    assert "unknown name 'agent'. Use model, task, run" in other
    assert "occur twice" in refusal(
        "harness", path, "--columns", "model=model,task=task,run=task,outcome=score"
    )
    assert "NAME=TEXT" in refusal("harness", path, "--columns", HARNESS28, "--metadata", "hardware")


# --------------------------------------------------------------------------------------------------- gaming


def test_gains_are_the_expected_maximum_times_the_noise_between_submissions(answer, tmp_path):
    result = answer("gaming", repeated(tmp_path / "a.csv", n_agents=5, n_tasks=60, n_trials=3))
    assert result["design"] == {"agent": 1, "task": 60, "trial": 3}
    assert result["sd"] == pytest.approx((result["components"]["residual"] / (60 * 3)) ** 0.5)
    assert [row["submissions"] for row in result["best_of"]] == [2, 5, 10, 27]
    for row in result["best_of"]:
        assert row["points"] == pytest.approx(100 * expected_maximum(row["submissions"]) * result["sd"])
    # Scaffolds s0 and s1 have two agents each, s2 one.
    assert [(row["team"], row["submissions"]) for row in result["teams"]] == [("s0", 2), ("s1", 2)]
    doubled = {row["design"]["task"] * row["design"]["trial"]: row["relative"] for row in result["designs"]}
    assert doubled == pytest.approx({180: 1.0, 360: 0.5**0.5})


def test_the_residual_is_that_of_lme4(answer, real_data):
    """Repeats of terminal_bench: lme4's fit counts invalid trials as 0, so compare on all rows."""
    result = answer("gaming", real_data / "terminal_bench_core_011.csv.gz")
    assert set(result["components"]) == {"agent", "task", "agent:task", "residual"}
    fitted = answer(
        "variance",
        real_data / "reference" / "tbcore.csv.gz",
        *("--outcome", "score", "--random", "agent + task + agent:task"),
    )
    lmer = json.loads((real_data / "reference" / "tbcore.lmer-tight.json").read_text())
    assert fitted["criterion"] == pytest.approx(lmer["deviance_or_REMLcrit"], abs=1e-4)
    assert result["components"]["residual"] == pytest.approx(fitted["residual"], rel=0.2)


def test_facets_that_vary_are_drawn_anew_but_for_the_judge(answer, tmp_path):
    rng = np.random.default_rng(8)
    rows = [
        f"B,a{i},s,m,2026-01-01,t{j:02d},{t},{int(rng.random() < 0.5)},{p},{q}"
        for i in range(3)
        for j in range(20)
        for t in (1, 2)
        for p in ("p1", "p2")
        for q in ("j1", "j2")
    ]
    result = answer("gaming", flat(tmp_path / "a.csv", rows, ",prompt_variant,judge"), "--team", "model")
    assert result["design"] == {"agent": 1, "task": 20, "prompt_variant": 2, "judge": 2, "trial": 2}
    assert set(result["shared"]) == {"agent", "task", "agent:task", "judge", "agent:judge", "task:judge"}
    assert [(row["team"], row["submissions"]) for row in result["teams"]] == [("m", 3)]


def test_a_team_may_be_a_column_of_the_file(answer, text, refusal, tmp_path):
    path = repeated(tmp_path / "a.csv", extra=",team", tail=",ours")
    assert [row["submissions"] for row in answer("gaming", path, "--team", "team")["teams"]] == [3]
    assert "teams, by team" in text("gaming", path, "--team", "team")
    assert "no column 'club' for teams; there are agent, scaffold, model, team" in refusal(
        "gaming", path, "--team", "club"
    )


def test_one_trial_per_task_is_refused(refusal, real_data):
    assert "not measured: one trial per task" in refusal(
        "gaming", real_data / "swebench_verified_2023_2025.csv.gz"
    )


# ------------------------------------------------------------------------------------------- the program


def called(*arguments, **streams):
    command = [sys.executable, "-m", "analytics", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False, text=True, timeout=60, **streams)


def test_python_m_analytics(tmp_path):
    ended = called("icc", repeated(tmp_path / "a.csv"), "--json", capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(json.loads(ended.stdout)["agents"]) == 3
    refused = called("icc", tmp_path / "none.csv", capture_output=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("python -m analytics icc: ")
    assert refused.stderr.count("\n") == 1


def test_help_tells_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("variance", "dstudy", "icc", "harness", "table"))


def test_a_flat_file_is_no_table(answer, refusal, tmp_path):
    """It is held to the rules of flat files, as by every other command."""
    path = flat(tmp_path / "a.csv", ["B,a,s,m,2026-01-01,t,1,pass"])
    assert 'row 1, outcome "pass": an outcome is a number from 0 to 1' in refusal("table", path)
    assert answer("table", path, "--long")["read_as"] == "Read a.csv as a long table, header in row 1."
    flat(path, ["B,a,s,m,2026-01-01,t,1,1"])
    told = {"read_as": "Read a.csv as a flat file.", "benchmark": "B", "agents": 1, "tasks": 1, "outcomes": 1}
    assert answer("table", path) == told
    out = tmp_path / "out.parquet"
    assert "a.csv is a flat file already. Leave out --to" in refusal("table", path, "--to", out)
    assert not out.exists()


def test_a_table_is_never_written_over_the_file_that_is_read(tmp_path, answer, refusal):
    source, path = flat(tmp_path / "a.csv", ["B,a,s,m,2026-01-01,t,1,1"]), tmp_path / "a.parquet"
    answer("table", source, "--long", "--to", path)
    before = path.read_bytes()
    assert "is the file that is read. Give another name" in refusal("table", path, "--long", "--to", path)
    assert path.read_bytes() == before
    assert "Give a name that ends in .parquet" in refusal("table", path, "--long", "--to", tmp_path / "b.csv")
    away = tmp_path / "away" / "b.parquet"
    assert f"{away} cannot be written: no such file" in refusal("table", path, "--long", "--to", away)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = called("icc", repeated(tmp_path / "a.csv"), stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")
