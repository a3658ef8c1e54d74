"""From outcomes to a published board."""

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.db import connection
from sklearn.linear_model import Ridge

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import as_dict
from leaderboard.boards.queries import entries_of, latest_board
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.errors import Refusal
from leaderboard.operations import services
from leaderboard.operations.services import NothingToRank, recompute
from leaderboard.studies import tables
from leaderboard.studies.models import AgentScores, Calibration, TaskSubset
from leaderboard.submissions.models import Submission
from tests.toys import AS_OF, csv_text, ladder, load_text


def board_of(slug="toy"):
    return recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=AS_OF)[0]


def lines(board):
    return {e.name: e for e in entries_of(board)}


def matrix(outcomes):
    return np.array([[int(mark) for mark in marks] for marks in outcomes.values()], float)


def test_ranking_is_the_mean_over_the_band(toy):
    """The whole board against a few lines of numpy and scikit-learn."""
    x = matrix(ladder(16, 20))
    in_band = [j for j in range(20) if 0.3 <= x[:, j].mean() <= 0.7]
    board = board_of()
    assert board.phase == "ongoing"
    assert sorted(board.subset.tasks.values_list("name", flat=True)) == [f"t{j:02d}" for j in in_band]
    assert board.calibration.n_agents == 16
    reference = Ridge(alpha=1.0).fit(x[:, in_band], x.mean(axis=1))
    assert board.calibration.intercept == pytest.approx(reference.intercept_, abs=1e-10)
    np.testing.assert_allclose(board.calibration.coefficients, reference.coef_, atol=1e-10)
    for i, entry in enumerate(lines(board)[f"a{i:02d}"] for i in range(16)):
        mean = x[i, in_band].mean()
        better = sum(x[j, in_band].mean() > mean for j in range(16))
        assert entry.score == pytest.approx(mean, abs=1e-12)
        assert entry.rank == 1 + better
        assert entry.naive_se == pytest.approx(math.sqrt(mean * (1 - mean) / len(in_band)), abs=1e-12)
        assert entry.full_score == pytest.approx(x[i].mean(), abs=1e-12)
        assert (entry.full_score_source, entry.marks) == ("measured", ["full"])


def test_a_subset_run_is_ranked_and_calibrated(toy):
    x = matrix(ladder(16, 20))
    board = board_of()
    in_band = [j for j in range(20) if 0.3 <= x[:, j].mean() <= 0.7]
    marks = "".join("1" if j in in_band[::2] else "0" if j in in_band else "." for j in range(20))
    load_text(csv_text({"new": marks}))
    newer = board_of()
    entry = lines(newer)["new"]
    assert newer.subset == board.subset
    assert newer.calibration == board.calibration
    x_new = np.array([[float(marks[j]) for j in in_band]])
    reference = Ridge(alpha=1.0).fit(x[:, in_band], x.mean(axis=1))
    assert entry.score == pytest.approx(x_new.mean(), abs=1e-12)
    assert entry.full_score == pytest.approx(reference.predict(x_new)[0], abs=1e-10)
    assert (entry.full_score_source, entry.full_naive_se, entry.marks) == ("calibrated", None, ["subset"])


def test_under_half_of_the_subset_is_listed_and_says_so(toy):
    subset = sorted(board_of().subset.tasks.values_list("name", flat=True))
    k = len(subset)
    few = set(subset[: k // 2 - 1])
    load_text(csv_text({"new": "".join("1" if f"t{j:02d}" in few else "." for j in range(20))}))
    entry = lines(board_of())["new"]
    assert entry.rank is None
    assert entry.unranked == (
        f"{len(few)} of {k} tasks of the subset have a valid outcome; {k // 2} (50%) are needed"
    )


def test_a_harness_failure_is_missing_and_never_zero(db):
    outcomes = ladder(16, 40)
    outcomes["a08"] = "x" + outcomes["a08"][1:]
    load_text(csv_text(outcomes))
    entry = lines(board_of())["a08"]
    x = np.array([float(mark) for mark in outcomes["a08"][1:]])
    assert entry.n_full == 39
    assert entry.full_score == pytest.approx(x.mean(), abs=1e-12)
    assert entry.n_valid_trials == 39


def test_an_incomplete_entry_is_ranked_on_its_valid_cells_and_marked(db):
    outcomes = ladder(16, 60)
    load_text(csv_text(outcomes))
    board = board_of()
    position = int(min(board.subset.tasks.values_list("name", flat=True))[1:])
    marks = outcomes["a08"]
    load_text(csv_text({"gap": marks[:position] + "x" + marks[position + 1 :]}))
    newer = board_of()
    entry = lines(newer)["gap"]
    k = newer.subset.members.count()
    assert k >= 20
    assert entry.n_scored == k - 1
    assert "incomplete" in entry.marks
    assert entry.rank is not None


def test_nobody_is_ranked_where_nobody_ran_enough(db):
    load_text(csv_text({"a": "1" * 10 + "." * 10, "b": "." * 10 + "x" * 10, "c": "." * 10 + "1" * 10}))
    board = board_of()
    assert board.phase == "cold_start"
    listed = [(e.name, e.rank, e.score) for e in entries_of(board)]
    assert listed == [("a", None, 1), ("b", None, None), ("c", None, 1)]
    assert lines(board)["b"].naive_se is None


def test_equal_scores_share_a_rank_and_stand_by_name(db):
    load_text(csv_text({"c": "1100", "a": "0011", "b": "1111", "d": "0000", "e": "1000"}))
    ranks = [(e.rank, e.name) for e in entries_of(board_of()) if e.rank]
    assert [rank for rank, _ in ranks] == sorted(rank for rank, _ in ranks)
    board = board_of()
    by_score = {}
    for entry in entries_of(board):
        by_score.setdefault(round(entry.score, 9), []).append(entry)
    for entries in by_score.values():
        assert len({e.rank for e in entries}) == 1
        assert [e.name for e in entries] == sorted(e.name for e in entries)


@pytest.mark.parametrize(
    ("outcomes", "phase", "words"),
    [
        (ladder(4, 20), "cold_start", "4 complete agents"),
        (ladder(5, 20), "provisional", "provisional until 15"),
        (ladder(14, 20), "provisional", "provisional until 15"),
        (ladder(15, 20), "ongoing", "of 20 tasks"),
        ({f"a{i:02d}": "0" * 19 + str(i % 2) for i in range(16)}, "unsuited", "at least 2"),
    ],
)
def test_phase_follows_from_the_data_and_says_why(db, outcomes, phase, words):
    load_text(csv_text(outcomes))
    board = board_of()
    assert board.phase == phase
    assert words in board.why
    assert (board.subset is None) == (phase in ("cold_start", "unsuited"))
    assert all(entry.rank for entry in board.entries.all())


def test_an_unsuited_benchmark_ranks_full_runs(db):
    load_text(csv_text({f"a{i:02d}": "1" * (i // 8) + "0" * (28 - i // 8) + str(i % 2) for i in range(16)}))
    board = board_of()
    assert board.phase == "unsuited"
    best = entries_of(board)[0]
    assert best.score == best.full_score == pytest.approx(2 / 29)
    assert best.n_scored == 29


def test_again_without_new_data_is_the_same_board(toy):
    first, is_new = recompute(benchmark=toy, as_of=AS_OF)
    second, is_new_again = recompute(benchmark=toy, as_of=AS_OF)
    assert (is_new, is_new_again) == (True, False)
    assert first == second
    assert (TaskSubset.objects.count(), Calibration.objects.count(), Board.objects.count()) == (1, 1, 1)


def test_a_provisional_subset_follows_the_agents_and_a_stable_one_stays(db):
    load_text(csv_text(ladder(6, 20)))
    assert board_of().subset.number == 1
    load_text(csv_text({f"b{i}": "10" * 10 for i in range(4)}))
    grown = board_of()
    assert (grown.subset.number, grown.phase) == (2, "provisional")
    load_text(csv_text({f"c{i}": "01" * 10 for i in range(5)}))
    stable = board_of()
    assert (stable.phase, stable.subset.provisional) == ("ongoing", False)
    load_text(csv_text({f"d{i}": "1" * 20 for i in range(30)}))
    later = board_of()
    assert later.subset == stable.subset
    assert Board.objects.get(number=1).subset.number == 1


def test_calibration_is_refitted_after_five_more_complete_agents(toy):
    first = board_of().calibration
    for i in range(5):
        load_text(csv_text({f"b{i}": "1" * (2 * i) + "0" * (20 - 2 * i)}))
        calibration = board_of().calibration
        assert (calibration == first) == (i < 4)
    assert calibration.n_agents == 21


def test_policy_decides_which_submissions_count(db):
    outcomes = ladder(16, 20)
    load_text(csv_text(outcomes))
    again = csv_text({"a08": "1" * 20}).replace(",1,1,1\n", ",2,1,1\n")
    load_text(again)
    benchmark = Benchmark.objects.get()
    own = np.array([float(mark) for mark in outcomes["a08"]])
    expected = {"mean": (own + 1) / 2, "first": own, "latest": np.ones(20)}
    for number, (duplicates, x) in enumerate(expected.items(), start=2):
        Policy.objects.create(benchmark=benchmark, number=number, duplicates=duplicates)
        entry = lines(board_of())["a08"]
        assert entry.full_score == pytest.approx(x.mean(), abs=1e-12)
        assert entry.n_submissions == (2 if duplicates == "mean" else 1)


def test_policy_names_the_settings_that_count(db):
    text = csv_text(ladder(5, 20))
    head, *rows = text.splitlines()
    judged = [f"{row},{judge}" for row in rows for judge in ("j1", "j2")]
    judged = [row.replace(",1,0,1,j2", ",1,1,1,j2") for row in judged]
    load_text("\n".join([f"{head},judge", *judged]))
    assert lines(board_of())["a00"].full_score > 0.5
    benchmark = Benchmark.objects.get()
    Policy.objects.create(benchmark=benchmark, number=2, counted_settings=[{"judge": "j1"}])
    x = matrix(ladder(5, 20))
    assert lines(board_of())["a00"].full_score == pytest.approx(x[0].mean(), abs=1e-12)


def test_full_runs_only_uses_no_subset(toy):
    board_of()
    Benchmark.objects.filter(pk=toy.pk).update(full_runs_only_at=AS_OF, full_runs_only_reason="an audit")
    board = board_of()
    assert board.subset is None
    assert board.phase == "ongoing"
    assert board.why == "An operator asked for full runs: an audit."


def test_withdrawn_submissions_do_not_count(toy):
    board_of()
    agent = toy.agents.get(name="a15")
    Submission.objects.filter(agent=agent).update(status="withdrawn")
    Benchmark.objects.filter(pk=toy.pk).update(data_version=7)
    assert "a15" not in lines(board_of())
    Submission.objects.update(status="withdrawn")
    with pytest.raises(NothingToRank):
        recompute(benchmark=toy, as_of=AS_OF)


def test_only_changed_agents_are_read_again(toy, monkeypatch):
    board_of()
    load_text(csv_text({"new": "1" * 20}))
    read = []
    original = tables.outcomes_of
    monkeypatch.setattr(tables, "outcomes_of", lambda ids: original(read.extend(ids) or read))
    board_of()
    assert read == list(Submission.objects.filter(agent__name="new").values_list("pk", flat=True))


def test_scores_that_were_kept_give_the_board_that_fresh_ones_give(toy):
    board_of()
    load_text(csv_text({"new": "1" * 20}))
    kept = board_of()
    AgentScores.objects.all().delete()
    fresh = tables.snapshot(Benchmark.objects.get())
    assert len(fresh.stale) == 17
    stored = tables.snapshot(Benchmark.objects.get()).table
    np.testing.assert_array_equal(stored.means, fresh.table.means)
    assert recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF) == (kept, False)


def test_a_submission_between_two_reads_is_seen(toy, monkeypatch):
    original = tables._read
    arrived = []

    def read(benchmark):
        snapshot = original(benchmark)
        if not arrived:
            arrived.append(True)
            load_text(csv_text({"late": "1" * 20}))
        return snapshot

    monkeypatch.setattr(tables, "_read", read)
    snapshot = tables.snapshot(toy)
    assert "late" in snapshot.table.agents
    assert snapshot.data_version == Benchmark.objects.get().data_version


def test_digest_is_sha256_of_canonical_json(toy):
    """Computed again from the stored rows, in another way."""
    board = board_of()
    policy = board.policy
    numbers = {}

    def number(value):
        text = f"{value:.9g}"
        key = f"@{len(numbers)}@"
        numbers[key] = text
        return key

    def plain(value):
        if isinstance(value, float):
            return number(value)
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    fields = (
        "band_lo band_hi strategy history_window hysteresis duplicates counted_settings refit_every "
        "default_target base_seed"
    )
    columns = (
        "scaffold model rank unranked score naive_se n_scored full_score full_score_source full_naive_se "
        "full_interval n_full n_valid_trials n_submissions targets icc flags marks"
    )
    content = {
        "policy": {f: plain(getattr(policy, f)) for f in fields.split()},
        "subset": sorted(board.subset.tasks.values_list("name", flat=True)),
        "entries": {
            e.name: {c: plain(getattr(e, c)) for c in columns.split()}
            | {"submitted_at": e.submitted_at.isoformat()}
            for e in Entry.objects.filter(board=board)
        },
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for key, value in numbers.items():
        text = text.replace(f'"{key}"', value)
    assert board.digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_knows_no_ids_slugs_or_versions(toy):
    text = csv_text(ladder(16, 20))
    head, *rows = text.splitlines()
    load_text("\n".join([head, *rows[::-1]]), slug="other")
    load_text(csv_text({"extra": "1" * 20}), slug="third")
    assert board_of("toy").digest == board_of("other").digest
    assert board_of("third").digest != board_of("toy").digest


def test_plain_values_have_no_nan(toy):
    json.dumps(as_dict(board := board_of(), entries_of(board)), allow_nan=False)


def test_a_slow_worker_does_not_publish_older_data_on_top(toy, monkeypatch):
    """One reads, another reads later data and publishes, then the first comes to publish."""
    original = services.standings
    newer = []

    def slow(**arguments):
        monkeypatch.setattr(services, "standings", original)
        load_text(csv_text({"late": "1" * 20}))
        newer.append(board_of())
        return original(**arguments)

    monkeypatch.setattr(services, "standings", slow)
    assert recompute(benchmark=toy, as_of=AS_OF) == (newer[0], False)
    assert latest_board(toy) == newer[0]
    assert "late" in lines(latest_board(toy))


@pytest.mark.django_db(transaction=True)
def test_two_at_once_publish_one_board():
    load_text(csv_text(ladder(16, 20)))
    benchmark = Benchmark.objects.get()

    def run(_):
        try:
            return recompute(benchmark=benchmark, as_of=AS_OF)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(4)))
    assert len({board.pk for board, _ in results}) == 1
    assert [is_new for _, is_new in results].count(True) == 1
    assert (Board.objects.count(), TaskSubset.objects.count(), Calibration.objects.count()) == (1, 1, 1)


@pytest.mark.parametrize(
    ("file", "size", "phase", "n_tasks", "n_agents"),
    [
        ("hal_gaia", 82, "ongoing", 165, 32),
        ("hal_corebench_hard", 15, "ongoing", 45, 38),
        ("hal_taubench_airline", 28, "ongoing", 50, 26),
        ("hal_scicode", None, "unsuited", 65, 24),
        ("terminal_bench_core_011", 25, "provisional", 80, 13),
    ],
)
def test_published_subset_sizes(db, real_data, file, size, phase, n_tasks, n_agents):
    """Ndzomga, Efficient Benchmarking of AI Agents, Table 5; terminal_bench_core_011 by STATISTICS §1."""
    from django.core.management import call_command

    call_command("load", str(real_data / f"{file}.csv.gz"), benchmark=file)
    board = board_of(file)
    assert (board.phase, board.n_tasks, board.entries.count()) == (phase, n_tasks, n_agents)
    assert (board.subset.members.count() if board.subset else None) == size
    assert all(entry.rank for entry in board.entries.all())


def test_no_benchmark_of_that_name(db):
    from leaderboard.catalog.queries import benchmark_of

    with pytest.raises(Refusal, match="no benchmark 'nope'"):
        benchmark_of("nope")
