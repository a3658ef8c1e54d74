"""``python -m selection``: keys, values of real boards, refusals, and what a reader sees."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from analytics import programs
from selection.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,valid"
FIGURES = [
    *("rho", "tau", "rho_calibrated", "r2", "pairs_correct", "pairs_clear", "rho_rest", "rho_null", "skill"),
    *("n", "n_left_out", "coverage", "se", "notes"),
]
PROTOCOLS = ["loao", "within_scaffold", "random_80_20", "loso", "lomo", "temporal"]
STRATEGIES = [
    "mid_range",
    "greedy",
    "random",
    "easiest",
    "hardest",
    "stratified",
    "information",
    "spread",
    "forecast",
]


@pytest.fixture
def text(capsys):
    def run(*arguments):
        assert main([*map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


def board(path, n_agents, n_tasks=30, *, seed=2, dated=True, benchmark="B"):
    """A flat file of agents of growing ability, one a day; the marks of each: 0, 1, x invalid, . not run."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=n_tasks)
    marks = {}
    for i in range(n_agents):
        chance = 1 / (1 + np.exp(difficulty - np.linspace(-1.5, 1.5, n_agents)[i]))
        marks[f"a{i:02d}"] = "".join(
            str(int(u < p)) for u, p in zip(rng.random(n_tasks), chance, strict=True)
        )
    return written(path, marks, dated=dated, benchmark=benchmark), marks


def written(path, marks, *, dated=True, benchmark="B"):
    rows = [
        f"{benchmark},{agent},s{i % 3},m{i},{f'2026-01-{1 + i:02d}' if dated else ''},t{j:02d},1,"
        f"{0 if mark == 'x' else mark},{int(mark != 'x')}"
        for i, (agent, line) in enumerate(marks.items())
        for j, mark in enumerate(line)
        if mark != "."
    ]
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


# ----------------------------------------------------------------------------------------------------- band


@pytest.mark.parametrize(
    ("name", "agents", "tasks", "size"),
    [("hal_gaia", 32, 165, 82), ("hal_corebench_hard", 38, 45, 15), ("hal_taubench_airline", 26, 50, 28)],
)
def test_bands_of_the_published_matrices(answer, real_data, name, agents, tasks, size):
    found = answer("band", real_data / f"{name}.csv.gz")
    subset = found["subset"]
    assert (found["agents"], found["tasks"], subset["size"]) == (agents, tasks, size)
    assert set(subset) >= {"lo", "hi", "size", "widened", "suited", "reason", "tasks"}
    assert (subset["lo"], subset["hi"], subset["widened"], subset["suited"]) == (0.3, 0.7, False, True)
    assert len(subset["tasks"]) == size
    assert subset["tasks"] == sorted(subset["tasks"])


def test_an_unsuited_board_is_an_answer_with_its_reason(answer, text, real_data):
    found = answer("band", real_data / "hal_scicode.csv.gz")
    assert found["subset"]["suited"] is False
    assert found["subset"]["tasks"] == []
    assert "only 6 of 65 tasks (9%)" in found["subset"]["reason"]
    assert "(10%) are needed" in text("band", real_data / "hal_scicode.csv.gz")


def test_the_band_as_text(text, real_data):
    out = text("band", real_data / "hal_corebench_hard.csv.gz")
    assert "15 tasks, pass rates from 30% to 70% (stable)" in out
    assert re.search(r"^capsule-3639589 +0\.303 +0\.524  unsure$", out, re.MULTILINE)
    assert "left out, but perhaps ranking tasks:" in out


# ------------------------------------------------------------------------------------------------- validate


@pytest.mark.slow(each=True)
def test_validate_of_core_bench(answer, real_data):
    found = answer("validate", real_data / "hal_corebench_hard.csv.gz", "--seeds", "5")
    assert (found["agents"], found["agents_in_file"], found["tasks"]) == (38, 38, 45)
    assert found["subset"]["size"] == 15
    assert list(found["protocols"]) == PROTOCOLS
    for protocol in found["protocols"].values():
        assert set(protocol) >= {"available", "reason", "n_folds", "n_skipped", "k_mean", "strategies"}
        assert list(protocol["strategies"]) == STRATEGIES
        for figures in protocol["strategies"].values():
            assert set(figures) >= set(FIGURES)
            missing = [name for name in FIGURES[:9] if figures[name] is None]
            assert all(name in figures["notes"] for name in missing)
    loao = found["protocols"]["loao"]["strategies"]
    assert loao["mid_range"]["rho"] == pytest.approx(0.929, abs=1e-3)
    assert loao["mid_range"]["rho_rest"] == pytest.approx(0.693, abs=1e-3)
    assert loao["mid_range"]["rho_null"] == pytest.approx(0.763, abs=0.01)
    assert loao["greedy"]["rho"] == pytest.approx(0.951, abs=1e-3)
    assert found["protocols"]["temporal"]["strategies"]["mid_range"]["rho"] == pytest.approx(0.940, abs=1e-3)
    assert "HAL Generalist Agent" in found["protocols"]["within_scaffold"]["per_scaffold"]


def test_only_what_is_asked_for_however_it_is_asked(answer, tmp_path):
    path, _ = board(tmp_path / "a.csv", 16)
    first = answer("validate", path, "--protocol", "loao", "lomo", "--strategy", "mid_range", "spread")
    second = answer(
        "validate",
        path,
        *("--protocol", "loao", "--protocol", "lomo", "--strategy", "mid_range", "--strategy", "spread"),
    )
    assert first == second
    assert list(first["protocols"]) == ["loao", "lomo"]
    assert list(first["protocols"]["loao"]["strategies"]) == ["mid_range", "spread"]
    assert first["protocols"]["lomo"]["available"] is False
    assert "model" in first["protocols"]["lomo"]["reason"]


def test_the_text_leads_with_pairs_correct_and_skill(text, tmp_path):
    asked = ("validate", board(tmp_path / "a.csv", 16)[0], "--protocol", "loao", "lomo")
    short = text(*asked).splitlines()
    assert len(short) <= 40
    assert max(map(len, short)) <= 100
    assert short[0].startswith("Do the ranking tasks rank like all tasks? ")
    out = text(*asked, "--full")
    head = next(line for line in out.splitlines() if "  strategy" in line).split()
    assert head[:7] == ["strategy", "Pairs", "in", "order", "SE", "Skill", "SE"]
    assert "Leave one agent out, 16 of 16 folds" in out
    assert re.search(r"\nranking tasks +\d+ tasks, pass rates from 30% to 70%, if chosen now\n", out)
    assert re.search(r"^Leave one model out +not available: ", out, re.MULTILINE)
    assert "95% intervals hit of all but Mid-range  measured only for the strategy in use" in out


def test_refusals_of_validate(refusal, tmp_path):
    path, _ = board(tmp_path / "a.csv", 8)
    assert "'foo'" in refusal("validate", path, "--protocol", "foo")
    assert "'bar'" in refusal("validate", path, "--strategy", "bar")
    assert "seed" in refusal("validate", path, "--seeds", "0")
    assert "worker" in refusal("validate", path, "--jobs", "0")
    assert "invalid int" in refusal("validate", path, "--seeds", "many")


# ------------------------------------------------------------------------------- standings, ranks, compare


def test_compare_on_the_subset(answer, real_data):
    found = answer(
        "compare", real_data / "terminal_bench_core_011.csv.gz", "--missing", "zero", "--target", "subset"
    )
    assert (found["target"], len(found["pairs"]), len(found["agents"])) == ("subset", 78, 13)
    assert 0 < found["omega"] < 1
    assert set(found["pairs"][0]) >= {
        *(
            "a",
            "b",
            "difference",
            "se",
            "df",
            "lower",
            "upper",
            "p",
            "p_adjusted",
            "method",
            "omitted",
            "reason",
        )
    }
    assert {pair["method"] for pair in found["pairs"]} <= {"repeated trials", "variance function"}
    assert found["pairs"][0]["omitted"] == ["agent:run", "agent:prompt", "agent:judge"]
    assert all(pair["difference"] >= 0 for pair in found["pairs"])
    assert all(pair["p_adjusted"] >= pair["p"] for pair in found["pairs"])


def test_the_domains_errors_are_larger_than_those_of_these_tasks(answer, text, real_data):
    """Five trials a task: about a factor of 2."""
    path = real_data / "terminal_bench_core_011.csv.gz"
    full, domain = (
        answer("compare", path, "--target", target, "--missing", "zero")["pairs"]
        for target in ("full", "domain")
    )
    errors = {(pair["a"], pair["b"]): pair["se"] for pair in full}
    ratios = [pair["se"] / errors[pair["a"], pair["b"]] for pair in domain]
    assert 1.5 < np.median(ratios) < 2.5
    named = ("20250924_droid_gpt-5", "ob1-09-10-25")
    out = text("compare", path, "--target", "domain", "--missing", "zero", "--agents", *named)
    assert "scores on       tasks like these 80" in out
    assert "never measured  how much agents depend on the judge; " in out
    assert "p, adjusted" in out
    assert "Adjusted over 1 pair by Benjamini and Hochberg" in out


def test_no_difference_goes_beyond_one(answer, tmp_path):
    path = written(tmp_path / "a.csv", {"all": "1" * 19 + "0", "none": "0" * 19 + "1"})
    (pair,) = answer("compare", path)["pairs"]
    assert (pair["difference"], pair["upper"]) == (pytest.approx(0.9), 1.0)
    assert 0 < pair["lower"] < 0.9


def test_compare_prints_the_pairs_of_the_best_ten(answer, text, tmp_path):
    path, _ = board(tmp_path / "a.csv", 16, 40)
    pairs = answer("compare", path)["pairs"]
    assert len(pairs) == 120

    def rows(*flags):
        shown = text("compare", path, *flags)
        return shown, len(re.findall(r"^  a\d\d +a\d\d ", shown, re.MULTILINE))

    shown, n = rows()
    assert n == 45
    assert "not shown" in shown
    assert "75 pairs with agents below the best 10, of 16; --all prints them" in shown
    assert "Adjusted over 120 pairs" in shown
    assert "95% interval of the line's own score or difference, not adjusted" in shown
    assert "neyman" not in shown
    assert "spread over tasks" in shown
    assert rows("--all")[1] == 120
    assert "not shown" not in rows("--all")[0]
    named = ("--agents", *(f"a{i:02d}" for i in range(12)))
    assert rows(*named)[1] == 66


def test_void_trials_count_as_failures_when_asked(answer, real_data):
    """With 5% and more of its trials void an agent is listed; counted as failures all are ranked."""
    path = real_data / "terminal_bench_core_011.csv.gz"
    gap, zero = (answer("ranks", path, "--target", "full", "--missing", how) for how in ("gap", "zero"))
    assert (zero["n_ranked"], len(zero["agents"])) == (13, 13)
    assert gap["n_ranked"] < 7
    void = next(one for one in gap["agents"] if one["agent"] == "20250924_droid_gpt-5")
    assert (void["rank"], void["how"]) == (None, "incomplete")
    low, high = void["bounds"]
    score = next(one["score"] for one in zero["agents"] if one["agent"] == "20250924_droid_gpt-5")
    assert low <= score <= high


@pytest.mark.parametrize("command", ["ranks", "validate"])
def test_that_missing_results_count_as_failures_is_said(command, text, tmp_path):
    path, marks = board(tmp_path / "a.csv", 12)
    said = "2 missing results count as failures."
    assert "failure" not in text(command, path, *(["--protocol", "loao"] if command == "validate" else []))
    written(path, marks | {"a03": "xx" + marks["a03"][2:]})
    more = ["--protocol", "loao", "--strategy", "random"] if command == "validate" else []
    for full in ([], ["--full"]) if command == "validate" else ([],):
        assert said in text(command, path, "--missing", "zero", *more, *full)


def test_standings_of_gaia(answer, text, real_data):
    path = real_data / "hal_gaia.csv.gz"
    found = answer("standings", path)
    assert (found["n_tasks"], found["n_complete"], found["phase"]) == (165, 32, "ongoing")
    assert (found["target"], found["subset"]["size"], len(found["agents"])) == ("full", 82, 32)
    assert set(found) == {
        *("n_tasks", "n_complete", "phase", "why", "target", "subset", "conditions", "verdict", "targets"),
        *("agents", "not_measured", "savings", "coverage", "notices", "measured", "why_target", "trials"),
        *("headline_from", "trial_noise", "n_missing_failed", "n_left_out", "next_step"),
    }
    assert set(found["targets"]) == {"subset", "full", "domain"}
    assert found["targets"]["full"]["n_ranked"] == 32
    first = found["targets"]["full"]["may_be_first"]
    may_hold = [line["agent"] for line in found["agents"] if line["at"]["full"]["rank_lower"] == 1]
    assert found["agents"][0]["agent"] in first
    assert set(first) < set(may_hold)
    assert found["savings"]["reduction"] == pytest.approx(83 / 165)
    assert answer("standings", path, "--target", "domain")["target"] == "domain"
    shown = text("standings", path, "--explain")
    assert f"{len(first)} of 32 agents could be the best." in shown
    assert f"The best agent (95%) is one of {found['agents'][0]['agent']}, " in " ".join(shown.split())
    assert "Other targets: --target subset, --target domain" in shown


def test_ranks_are_the_view_of_one_target(answer, text, real_data):
    path = real_data / "hal_gaia.csv.gz"
    found, whole = answer("ranks", path, "--target", "full"), answer("standings", path, "--target", "full")
    assert (found["target"], found["n_tasks"], len(found["agents"])) == ("full", 165, 32)
    for one, line in zip(found["agents"], whole["agents"], strict=True):
        assert one == {
            "agent": line["agent"],
            "scaffold": line["scaffold"],
            "model": line["model"],
            "how": line["how"],
            **line["at"]["full"],
        }
    assert {key: found[key] for key in whole["targets"]["full"]} == whole["targets"]["full"]
    assert "rank ranges are usually wider" in found["note"]
    assert answer("ranks", path, "--target", "domain")["note"] == "tasks are taken as independent"


def test_ranks_show_who_may_hold_which_rank_and_nothing_else(answer, text, real_data):
    path = real_data / "hal_gaia.csv.gz"
    found, shown = answer("ranks", path), text("ranks", path)
    head = next(line for line in shown.splitlines() if line.startswith("Row"))
    assert re.split(" {2,}", head) == [
        "Row",
        "Rank",
        "95% rank range",
        "Could be the best",
        "Agent",
        "Tied with",
    ]
    for told in ("Phase:", "SE", "Cost ", "do not include", "cost of a full run"):
        assert told not in shown
    for row, one in enumerate(found["agents"], 1):
        tied = [
            f"{first + 1}–{last + 1}" if first < last else f"{first + 1}" for first, last in one["tied_with"]
        ]
        line = next(line for line in shown.splitlines() if re.match(rf" *{row}  ", line))
        assert line.rstrip().endswith(f"  {', '.join(tied)}" if tied else one["agent"])
        assert (" yes " in line) == (one["agent"] in found["may_be_first"])
        assert f" {one['rank_lower']}–{one['rank_upper']} " in line


def test_the_verdict_needs_a_validation(answer, text, tmp_path):
    path, _ = board(tmp_path / "a.csv", 16, 40)
    assert answer("standings", path)["verdict"] is None
    verdict = answer("standings", path, "--validate")["verdict"]
    assert (verdict["protocol"], verdict["n"]) == ("loao", 16)  # six came in time
    figures = answer("validate", path, "--protocol", "loao", "--strategy", "mid_range", "random")
    told = figures["protocols"]["loao"]["strategies"]
    assert verdict["pairs"] == told["mid_range"]["pairs_correct_full"]
    assert verdict["clear"] == told["mid_range"]["pairs_clear_full"]
    of_random = told["random"]["pairs_correct_full"]
    assert verdict["random_difference"] == pytest.approx(verdict["pairs"] - of_random)
    assert verdict["se"] == told["mid_range"]["se"]["random_difference"]
    few, _ = board(tmp_path / "b.csv", 12, 20)
    assert "New agents: " in text("standings", few, "--validate")


def test_agents_that_ran_a_version_are_estimated_where_it_is_named(answer, tmp_path):
    path, marks = board(tmp_path / "a.csv", 16)
    subset = {int(task[1:]) for task in answer("band", path)["subset"]["tasks"]}
    half = set(sorted(subset)[: -(-len(subset) // 2)])
    marks["most"] = "".join(mark if j in half else "." for j, mark in enumerate(marks["a08"]))
    marks["few"] = "".join(mark if j == min(subset) else "." for j, mark in enumerate(marks["a08"]))
    path = written(tmp_path / "b.csv", marks)
    listed = {one["agent"]: one for one in answer("ranks", path, "--target", "subset")["agents"]}
    assert (listed["most"]["rank"], listed["few"]["rank"]) == (None, None)
    assert "ranking tasks were not run" in listed["few"]["reason"]
    versions = [
        {"tasks": [f"t{j:02d}" for j in sorted(tasks)], "chosen_from": sorted(marks)[:16]}
        for tasks in (half, subset)
    ]
    (tmp_path / "versions.json").write_text(json.dumps(versions))
    named = ("--subsets", tmp_path / "versions.json")
    found = {one["agent"]: one for one in answer("ranks", path, *named)["agents"]}
    assert (found["most"]["how"], found["few"]["how"]) == ("estimated", "incomplete")
    assert found["most"]["rank"] is not None
    compared = answer("compare", path, *named, "--agents", "most", "few", "a08")
    assert list(compared["left_out"]) == ["few"]
    (pair,) = compared["pairs"]
    assert pair["terms"]["calibration"] > 0


def test_rules_are_typed_alike_for_every_command(answer, tmp_path):
    path, _ = board(tmp_path / "a.csv", 16, 40)
    flags = ("--band", "0.4", "0.6", "--window", "12")
    k = answer("band", path, *flags)["subset"]["size"]
    assert k != answer("band", path)["subset"]["size"]
    assert answer("standings", path, *flags)["subset"]["size"] == k
    assert answer("ranks", path, *flags, "--target", "subset")["n_tasks"] == k
    assert answer("compare", path, *flags, "--target", "subset")["n_tasks"] == k
    validated = answer("validate", path, *flags, "--protocol", "loao", "--strategy", "mid_range")
    assert validated["subset"]["size"] == k
    spread = answer("standings", path, "--strategy", "spread")["subset"]
    assert spread["tasks"] == answer("band", path, "--strategy", "spread")["subset"]["tasks"]
    assert answer("ranks", path, "--seed", "3")["critical"] != answer("ranks", path)["critical"]


def test_universe_and_settings(answer, refusal, tmp_path):
    path, marks = board(tmp_path / "a.csv", 8, 40)
    marks["part"] = marks["a03"][:30] + "." * 10
    path = written(tmp_path / "b.csv", marks)
    assert answer("standings", path)["n_tasks"] == 40
    common = answer("standings", path, "--universe", "common")
    assert common["n_tasks"] == 30
    assert {line["how"] for line in common["agents"]} == {"measured"}
    (tmp_path / "tasks.txt").write_text("\n".join(f"t{j:02d}" for j in range(12)))
    assert answer("standings", path, "--universe", tmp_path / "tasks.txt")["n_tasks"] == 12
    assert "NAME=VALUE" in refusal("ranks", path, "--settings", "judge")
    assert "unknown name 'juge'. Use prompt_variant, judge, temperature" in refusal(
        "ranks", path, "--settings", "juge=j1"
    )
    assert "is not a number" in refusal("ranks", path, "--settings", "temperature=hot")


def test_what_takes_long_says_that_it_is_at_work(capsys, monkeypatch, tmp_path):
    path, _ = board(tmp_path / "a.csv", 8, 40)
    assert main(["standings", str(path)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(programs, "EVERY", 0.001)
    assert main(["standings", str(path)]) == 0
    said = set(capsys.readouterr().err.splitlines())
    assert said == {"standings: still at work, nothing to count yet"}


@pytest.mark.parametrize("command", ["band", "standings", "ranks", "compare", "validate"])
def test_a_condition_that_nothing_ran_under_is_refused(refusal, tmp_path, command):
    path, _ = board(tmp_path / "a.csv", 8, 40)
    told = "no results. Conditions in the file: nothing stated\n"
    assert refusal(command, path, "--settings", "judge=j9").endswith(f"--settings judge=j9: {told}")
    head, *rows = path.read_text().splitlines()
    levels = [f"{row},{'plain' if i % 2 else 'terse'},{(i % 3) / 2}" for i, row in enumerate(rows)]
    path.write_text("\n".join([f"{head},prompt_variant,temperature", *levels]) + "\n")
    assert (
        "--settings prompt_variant=nope: no results. Conditions in the file: "
        "prompt_variant=plain,temperature=0, "
        "prompt_variant=plain,temperature=0.5, prompt_variant=plain,temperature=1, "
        "prompt_variant=terse,temperature=0"
    ) in refusal(command, path, "--settings", "prompt_variant=plain", "prompt_variant=nope")
    assert "prompt_variant=plain,temperature=2: no results" in refusal(
        command, path, "--settings", "prompt_variant=plain,temperature=2"
    )


def test_lists_that_are_none_are_refused(refusal, tmp_path):
    path, _ = board(tmp_path / "a.csv", 8, 40)
    odd = tmp_path / "odd.json"
    assert "zero is larger than 64 MiB" in refusal("standings", path, "--universe", "/dev/zero")
    assert "zero is larger than 64 MiB" in refusal("standings", path, "--subsets", "/dev/zero")
    odd.write_bytes(b"\xff\n")
    assert "odd.json is not UTF-8 text" in refusal("standings", path, "--universe", odd)
    for stated in (b"\xff", b"[" * 99_999, b'[{"tasks": [], "chosen_from": [], "number": 1e999}]', b"5"):
        odd.write_bytes(stated)
        assert "odd.json is not a list of objects" in refusal("standings", path, "--subsets", odd)


def test_without_a_subset_the_target_is_full(answer, refusal, real_data, tmp_path):
    path, _ = board(tmp_path / "a.csv", 4)
    assert answer("compare", path)["target"] == answer("ranks", path)["target"] == "full"
    for command in ("compare", "ranks", "standings"):
        assert "nly 4 full runs" in refusal(command, path, "--target", "subset")
        assert "nly 6 of 65 tasks (9%)" in refusal(
            command, real_data / "hal_scicode.csv.gz", "--target", "subset"
        )


def test_refusals_of_compare_and_ranks(refusal, tmp_path):
    path, _ = board(tmp_path / "a.csv", 8)
    near = "unknown agent 'A0'. Did you mean 'a00', 'a01', 'a02'?"
    assert near in refusal("compare", path, "--agents", "A0")
    assert "1 of 1 agents can be compared; 2 are needed" in refusal("compare", path, "--agents", "a00")
    assert "invalid choice" in refusal("ranks", path, "--target", "all")
    assert "lo = 0.7 is out of range" in refusal("ranks", path, "--band", "0.7", "0.3")
    assert "file not found" in refusal("standings", path, "--subsets", tmp_path / "none.json")
    for stated in ("[{}]", "[1]", "3", '{"tasks": []}', "not json", '[{"tasks": 1, "chosen_from": []}]'):
        (tmp_path / "versions.json").write_text(stated)
        refused = refusal("standings", path, "--subsets", tmp_path / "versions.json")
        assert "versions.json is not a list of objects with tasks and chosen_from" in refused
    (tmp_path / "versions.json").write_text('[{"tasks": [], "chosen_from": [], "size": 3}]')
    assert "unknown field 'size' in a version" in refusal(
        "standings", path, "--subsets", tmp_path / "versions.json"
    )


# ---------------------------------------------------------------------------------------------------- drift


@pytest.mark.slow(each=True)
def test_drift_of_swe_bench_verified(answer, real_data):
    path = real_data / "swebench_verified_2023_2025.csv.gz"
    found = answer("drift", path)
    assert len(found["chosen_from"]) == 15
    assert len(found["promises"]) == 42
    monitors = found["monitors"]
    assert set(monitors["rank fidelity"]) >= {"state", "statistic", "threshold", "first_warn", "first_alert"}
    fired = {name for name, monitor in monitors.items() if monitor["first_alert"]}
    assert {"capability jump", "band erosion"} <= fired  # pass rates rose from 4% to 65% in this time
    assert monitors["cost per task"]["reason"] == "not measured: no cost was stated"
    for monitor in monitors.values():
        for firing in (monitor["first_warn"], monitor["first_alert"]):
            assert firing is None or firing["day"] > found["fixed_on"]


def test_drift_as_text(text, tmp_path):
    out = text("drift", board(tmp_path / "a.csv", 31, 40)[0])
    assert "first fired:" in out
    assert "not fired" in out


def test_refusals_of_drift(refusal, real_data, tmp_path):
    assert "16 of 16 agents have no date" in refusal("drift", board(tmp_path / "a.csv", 16, dated=False)[0])
    assert "4 agents with full runs" in refusal("drift", board(tmp_path / "b.csv", 4)[0])
    assert "none after 2026-01-15" in refusal("drift", board(tmp_path / "c.csv", 15)[0])
    assert "no ranking tasks for" in refusal("drift", real_data / "hal_scicode.csv.gz")


# -------------------------------------------------------------------------------------- files, the program


@pytest.mark.parametrize("command", ["band", "validate", "standings", "compare", "ranks", "drift"])
def test_what_is_no_flat_file_of_one_benchmark_is_refused(refusal, tmp_path, command):
    assert "file not found" in refusal(command, tmp_path / "none.csv")
    path, _ = board(tmp_path / "a.csv", 8)
    other, _ = board(tmp_path / "b.csv", 8, benchmark="C")
    path.write_text(path.read_text() + "".join(other.read_text().replace("a0", "b0").splitlines(True)[1:]))
    assert '2 benchmarks ("B", "C")' in refusal(command, path)
    (tmp_path / "c.csv").write_text("x,y\n1,2\n")
    assert "c.csv is refused" in refusal(command, tmp_path / "c.csv")


def test_a_task_nobody_ran_and_an_agent_with_one_task(answer, tmp_path):
    _, marks = board(tmp_path / "a.csv", 16)
    marks = {agent: f"{line}x" for agent, line in marks.items()} | {"one": "1"}
    path = written(tmp_path / "b.csv", marks)
    for command in ("band", "validate", "standings", "compare", "ranks"):
        answer(command, path, *(["--protocol", "loao", "lomo"] if command == "validate" else []))
    answer("compare", path, "--target", "full")
    answer("ranks", path, "--target", "full")


def test_all_equal_scores_are_answers_without_figures(answer, tmp_path):
    marks = {f"a{i:02d}": "01" * 10 if i % 2 else "10" * 10 for i in range(16)}
    path = written(tmp_path / "a.csv", marks)
    figures = answer("validate", path, "--protocol", "loao")["protocols"]["loao"]["strategies"]["mid_range"]
    assert figures["rho"] is None
    assert figures["notes"]["rho"]
    assert {agent["rank_upper"] for agent in answer("ranks", path)["agents"]} == {16}
    answer("compare", path)


def test_python_m_selection(tmp_path):
    path, _ = board(tmp_path / "a.csv", 8)

    def called(*arguments):
        command = [sys.executable, "-m", "selection", *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)

    ended = called("band", path, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["agents"] == 8
    refused = called("drift", path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        refused.stderr == "python -m selection drift: 8 agents with full runs; a check for drift needs 15\n"
    )


def test_names_of_prompts_decide_no_consistency(answer, text, tmp_path):
    """Each of two compared prompts has an ICC of its own: the first by name is not that of the agent.

    In these data the two of an agent lie .06 apart at least.
    """
    rng = np.random.default_rng(9)
    rows = [
        f"B,a{i},S,M{i},2026-01-{i + 1:02d},t{j:02d},{trial},{int(rng.random() < p)},1,{prompt}"
        for i in range(6)
        for j, p in enumerate(np.linspace(0.05, 0.95, 20))
        for prompt in ("plain", "terse")
        for trial in (1, 2, 3)
    ]
    found = {}
    for name in ("plain", "zplain"):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([f"{HEAD},prompt_variant", *rows]).replace(",plain", f",{name}") + "\n")
        found[name] = {line["agent"]: line["icc"] for line in answer("standings", path)["agents"]}
        shown = " ".join(text("standings", path, "--explain").split())
        assert "No intraclass correlation: " in shown
        assert (
            "each of the 2 conditions has its own; see the agent's page, or python -m analytics icc" in shown
        )
    for agent, told in found["plain"].items():
        plain, terse = told.pop("by_condition")
        renamed = found["zplain"][agent].pop("by_condition")
        assert (told["icc"], told) == (None, found["zplain"][agent])
        assert plain["condition"] == "prompt plain"
        assert abs(plain["icc"] - terse["icc"]) > 0.06
        assert renamed == [terse, plain | {"condition": "prompt zplain"}]


def test_an_agent_that_lost_trials_under_what_is_compared_did_not_run_another_prompt_alone(
    answer, text, tmp_path
):
    """a0 and a1 ran both prompts; of 40 tasks under terse the harness lost five, and plain is left out."""
    rows = [
        f"B,a{i:02d},S,M{i},2026-01-{i + 1:02d},t{j:02d},1,{'0,0' if lost else f'{(i + j) % 2},1'},{prompt}"
        for i in range(20)
        for j in range(40)
        for prompt in ("plain", "terse")
        for lost in [j < 5 and (i < 2 if prompt == "terse" else 1 < i < 6)]
    ]
    rows += [f"B,b,S,N,2026-01-30,t{j:02d},1,1,1,plain" for j in range(40)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"{HEAD},prompt_variant", *rows]) + "\n")
    lines = {line["agent"]: line for line in answer("standings", path)["agents"]}
    for agent in ("a00", "a01"):
        assert {at["reason"] for at in lines[agent]["at"].values()} == {
            "5 of its 40 tasks lack a valid result under prompt terse, more than 5%"
        }
    assert {at["reason"] for at in lines["b"]["at"].values()} == {
        "ran only under prompt plain; this board compares prompt terse"
    }
    assert (
        "3 agents are not ranked: 2 have too few results under prompt terse, 1 ran only under prompt plain."
    ) in " ".join(text("standings", path).split())


def test_a_file_with_groups_says_what_they_are_taken_for(answer, tmp_path):
    rng = np.random.default_rng(4)
    rows = [
        f"b,a{i},s,m,2025-01-0{i + 1},t{j:02d},1,{int(rng.random() < 0.2 + i / 10)},1,g{j // 3}"
        for i in range(6)
        for j in range(36)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"{HEAD},group", *rows]) + "\n")
    found = answer("ranks", path, "--target", "domain")
    assert found["note"] == "tasks of one group are taken as drawn together (12 groups)"
    assert {one["method"] for one in found["agents"]} == {"clusters"}
    within = answer("compare", path, "--target", "domain", "--groups", "group:stratum")
    assert {one["method"] for one in within["pairs"]} == {"strata"}
    alone = answer("standings", path, "--target", "domain", "--groups", "none")
    assert alone["targets"]["domain"]["note"] == "tasks are taken as independent"
    named = answer("ranks", path, "--target", "domain", "--groups", "category:cluster")
    assert named["note"] == "no task has a category: tasks are taken as independent"
