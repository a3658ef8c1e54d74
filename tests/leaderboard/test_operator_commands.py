"""The operator's hand: tasks, descriptions, policies, and what is taken back, confirmed or approved."""

import json
import re

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from leaderboard.catalog.models import Agent, Benchmark, Policy, Task
from leaderboard.catalog.rules import RULES, shown
from leaderboard.errors import Conflict
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.previews import common_tasks, offer_text
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import OutcomeDetail, Submission
from leaderboard.submissions.queries import deliveries
from leaderboard.terminal.help import CommandLine
from tests.refusals import refused
from tests.toys import AS_OF, HEAD, csv_text, ladder, lines_of, load_text, recomputed, rows_text


@pytest.fixture
def listed(run, tmp_path):
    def call(text, *, slug="new", name="tasks.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("tasks", slug, str(path))

    return call


def tasks():
    return list(Task.objects.order_by("name").values_list("name", "category", "group", "position"))


class TestTasks:
    CSV = 'name,category,group,position\nb/1,easy,repo,2\n"a, c",,,1\n'

    def test_a_benchmark_from_a_list(self, listed):
        assert "2 tasks, 2 new, 0 changed" in listed(self.CSV)
        assert tasks() == [("a, c", "", "", 1), ("b/1", "easy", "repo", 2)]
        assert Benchmark.objects.get().data_version == 1

    def test_again_changes_nothing(self, listed):
        listed(self.CSV)
        assert "2 tasks, 0 new, 0 changed" in listed(self.CSV)
        benchmark = Benchmark.objects.get()
        assert (benchmark.data_version, benchmark.shown_version) == (1, 0)

    def test_ndjson_completes_what_is_known(self, listed):
        listed("name\na\nb\n")
        lines = [{"name": "a", "group": "g", "position": 7}, {"name": "b", "category": "c"}, {"name": "d"}]
        printed = listed("\n".join(map(json.dumps, lines)), name="tasks.ndjson")
        assert "3 tasks, 1 new, 2 changed" in printed
        assert [task[:3] for task in tasks()] == [("a", "", "g"), ("b", "c", ""), ("d", "", "")]
        assert Task.objects.get(name="a").position == 7
        benchmark = Benchmark.objects.get()
        assert (benchmark.data_version, benchmark.shown_version) == (2, 1)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("category\nx\n", ["name: the column is missing"]),
            ("name,position\na,x\n,1\n", ['row 1, position "x"', "row 2, name: the field is empty"]),
            ("name\na\na\n", ["row 2, name", "row 1 too"]),
            ("name,colour\na,red\n", ["row 1, colour: unknown field"]),
            ("name\na,b\n", ["row 1"]),
            ("", ["the column is missing"]),
            ("name\n", ["the list has no task"]),
            ('{"name": 7}', ["row 1, name", "a name is text"]),
            ('{"name": "a"}\n{', ["row 2: the line is not JSON"]),
            (
                '{"name": "a", "n": ' + "9" * 5000 + "}",
                ["row 1: the line is not JSON: a number has too many digits"],
            ),
            ('{"name": "a", "position": true}', ["position"]),
            (b"name\n\xff\n", ["not UTF-8"]),
            (b"name\n" + b"a" * 2**24, ["longer than 16 MiB"]),
            ("name,name\na,b\n", ["name: several columns"]),
            ('{"name": "a", "name": "b"}', ["row 1", "twice"]),
            ("name,position\na,2147483648\n", ["from 0 to 2,147,483,647"]),
            ("name\na\u202eb\n", ["row 1, name"]),
        ],
    )
    def test_every_fault_is_told_and_nothing_stored(self, listed, text, words):
        with pytest.raises(CommandError) as refusal:
            listed(text)
        for word in words:
            assert word in str(refusal.value)
        assert not Benchmark.objects.exists()

    def test_a_task_stays_in_its_group_and_category(self, listed):
        listed(self.CSV)
        with pytest.raises(CommandError, match=r"group 'repo', but is listed in 'other'"):
            listed("name,group\nb/1,other\n")
        with pytest.raises(CommandError, match=r"category 'easy'"):
            listed("name,category\nb/1,hard\n")


class TestBenchmark:
    def test_what_is_said_is_shown(self, run, toy):
        said = ["title=Toys", "description=Small = fine", "url=https://example.org/toy", "licence=CC-BY-4.0"]
        printed = run("benchmark", "toy", "--set", *said)
        assert "Changed: title, description, url, licence." in printed
        toy.refresh_from_db()
        assert (toy.title, toy.description, toy.shown_version) == ("Toys", "Small = fine", 1)
        assert run("benchmark", "toy") in printed
        assert "No change." in run("benchmark", "toy", "--set", *said)
        toy.refresh_from_db()
        assert (toy.shown_version, toy.data_version) == (1, 1)

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            (["url=example"], 'url "example": '),
            (["visibility=secret"], "public, unlisted, private"),
            (["slug=other"], "slug: unknown field"),
            (["title="], "title"),
            (["title=" + "x" * 256], "title"),
            (["title= "], "title"),
            (["title=a\x1b[31mb"], r"control character U\+001B"),
            (["unit=\u202e%"], r"invisible character U\+202E"),
            (["licence=a\nb"], r"control character U\+000A"),
            (["title"], "Expected FIELD=VALUE"),
            (["title=a", "title=b"], "twice"),
        ],
    )
    def test_faults(self, run, toy, said, words):
        with pytest.raises(CommandError, match=words):
            run("benchmark", "toy", "--set", *said)
        toy.refresh_from_db()
        assert toy.shown_version == 0


class TestPolicy:
    def test_every_field_has_a_rule_and_a_sentence(self, run, toy):
        fields = {field.name for field in Policy._meta.fields}
        assert set(RULES) == fields - {
            "id",
            "benchmark",
            "number",
            "resolved_from",
            "created_at",
            "created_by",
        }
        printed = run("policy", "toy", "--advanced")
        for field in RULES:
            assert Policy._meta.get_field(field).help_text.rstrip(".") in " ".join(printed.split())
            assert f"  {field} " in printed

    def test_defaults_obey_their_rules(self, toy):
        policy = toy.policies.get()
        for field, rule in RULES.items():
            value = getattr(policy, field)
            assert rule.read(shown(field, value)) == value, field

    def test_a_change_is_a_new_row(self, run, toy):
        before = Policy.objects.values().get()
        printed = run("policy", "toy", "--set", "refit_every=7", "history_window=5", "estimator=ridge")
        assert "refit_every: 5 → 7\n" in printed
        assert "Policy 2 is in force." in printed
        after = Policy.objects.values().get(number=2)
        changed = {name for name in RULES if after[name] != before[name]}
        assert changed == {"refit_every", "history_window", "estimator"}
        assert after["created_at"] >= before["created_at"]

    def test_a_dry_run_and_no_change_store_nothing(self, run, toy):
        assert "strategy: mid_range → random" in run("policy", "toy", "--set", "strategy=random", "--dry-run")
        assert "No change" in run("policy", "toy", "--set", "strategy=mid_range")
        assert Policy.objects.count() == 1

    def test_the_preview_tells_the_band(self, run, toy):
        wide = ("policy", "toy", "--set", "subset_from=20", "band_lo=0.1", "band_hi=0.9", "--dry-run")
        printed = run(*wide)
        assert re.search(r"There would be 1\d ranking tasks instead of \d: \d enter, 0 leave", printed)
        assert "(now pass rates from 30% to 70%, then pass rates from 10% to 90%)" in printed
        recompute(benchmark=toy, as_of=AS_OF)
        assert "stay until you approve others" in run(*wide)

    def test_the_preview_tells_ranks(self, run, db):
        """By hand: x has 1, then 0 on all tasks, y ½ on each; the mean ties them, the first does not."""
        load_text(csv_text({"x": "1" * 10, "y": "1" * 5 + "0" * 5}))
        second = csv_text({"x": "0" * 10, "y": "0" * 5 + "1" * 5}).replace(",1,", ",2,")
        load_text(second)
        printed = run("policy", "toy", "--set", "duplicates=first", "--dry-run")
        assert "1 of 2 agents would change rank: y 1 → 2." in printed

    def test_the_preview_tells_the_rank_ranges_that_the_next_board_has(self, run, toy):
        change = ("policy", "toy", "--set", "trial_noise=0.01 from elsewhere")
        printed = run(*change, "--dry-run")
        assert "would change rank:" not in printed
        foreseen = dict(re.findall(r"(a\d+) \S+ → (\d+(?:–\d+)?)", printed))
        run(*change)
        lines = lines_of(recomputed())
        assert len(foreseen) == 5
        for agent, ends in foreseen.items():
            at = lines[agent].at["full"]
            assert {int(end) for end in ends.split("–")} == {at.rank_lower, at.rank_upper}

    @pytest.mark.parametrize(
        "said",
        [
            "band_lo=-0.1",
            "band_lo=NaN",
            "band_hi=0.2",
            "band_hi=1.1",
            "band_hi=١",
            "hysteresis=0_1",
            "strategy=\ud800",
            "strategy=fastest",
            "history_window=4",
            "hysteresis=0.5",
            "hysteresis=0.49999999999999999999",
            "subset_from=4",
            "subset_from=51",
            "subset_from=１５",
            "estimator=lasso",
            "refit_every=11",
            "default_target=all",
            "missing=none",
            "universe=[]",
            "universe=some",
            'universe=["no such task"]',
            "duplicates=best",
            "counted_settings=[{}]",
            'counted_settings=[{"run": "r1"}]',
            'counted_settings=[{"temperature": "hot"}]',
            'counted_settings=[{"temperature": 1e400}]',
            'counted_settings=[{"temperature": 1e13}]',
            'counted_settings=[{"judge": "a\\u0000"}]',
            'counted_settings=[{"judge": "\\ud800"}]',
            'counted_settings=[{"judge": "' + "j" * 256 + '"}]',
            "trial_noise=0.118",
            "trial_noise=0 from elsewhere",
            "trial_noise=1.1 from elsewhere",
            "trial_noise=NaN from elsewhere",
            "trial_noise=0.1 from ",
            "n_trials=0",
            "n_trials=99999999999999999999999",
            "resubmission=never",
            "audit_share=2",
            "review=",
            "members_only=perhaps",
            "quota_per_account=0",
            "base_seed=-1",
            "number=7",
        ],
    )
    def test_a_fault_names_field_and_rule(self, run, toy, said):
        field = said.partition("=")[0]
        with pytest.raises(CommandError, match=rf"{field}[: ]"):
            run("policy", "toy", "--set", said)
        assert Policy.objects.count() == 1

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            (["band_lo=0.9"], 'band_lo "0.9": must be below band_hi, 0.7'),
            (['universe=["t00", "t00"]'], 'universe "t00": is named more than once'),
            (["base_seed=99999999999999999999"], "use a whole number from 0 to 2,147,483,647"),
            (["band_hi=0.2"], 'band_hi "0.2": must be above band_lo, 0.3'),
            (
                ["band_lo=0.9", "band_hi=0.8"],
                'band_hi "0.8": must be above band_lo, 0.9',
            ),
        ],
    )
    def test_a_fault_tells_what_would_be_right(self, run, toy, said, told):
        with pytest.raises(CommandError) as refusal:
            run("policy", "toy", "--set", *said)
        assert told in str(refusal.value)

    def test_all_faults_come_at_once(self, run, toy):
        with pytest.raises(CommandError) as refusal:
            run("policy", "toy", "--set", "strategy=fastest", "refit_every=1", "n_trials=3")
        assert 'strategy "fastest": ' in str(refusal.value)
        assert 'refit_every "1": ' in str(refusal.value)
        assert "n_trials" not in str(refusal.value)

    def test_conditions_are_named_whole(self, run, toy):
        run("policy", "toy", "--set", 'counted_settings=[{"judge": "j1"}]')
        assert Policy.objects.get(number=2).counted_settings == [
            {"prompt_variant": None, "judge": "j1", "temperature": None}
        ]
        run("policy", "toy", "--set", "counted_settings=comparable")
        assert Policy.objects.get(number=3).counted_settings is None

    def test_a_facet_that_is_not_stated_is_null(self, run, toy):
        with pytest.raises(CommandError, match=r'each null where it is not stated \(not ""\)'):
            run("policy", "toy", "--set", 'counted_settings=[{"prompt_variant": "p", "judge": ""}]')

    def test_two_changes_at_once_do_not_undo_each_other(self, toy):
        first, second = (changed_policy(benchmark=toy, values={"n_trials": n}) for n in "23")
        put_in_force(policy=first)
        with refused(Conflict, "policy_changed_meanwhile"):
            put_in_force(policy=second)


class TestCommonTasks:
    """Four or five agents share 12 of 20 tasks; one has them all."""

    @pytest.fixture
    def thin(self, db):
        marks = {f"a{i}": "1" * 12 + "." * 8 for i in range(3)} | {"whole": "1" * 20}
        load_text(csv_text(marks))
        return Benchmark.objects.get()

    def test_counted_by_hand(self, thin):
        assert common_tasks(thin) == [f"t{j:02d}" for j in range(12)]
        assert offer_text(thin).startswith("1 of 4 agents are complete on all 20 tasks; all 4 share 12: ")

    def test_load_says_so_and_the_policy_freezes_them(self, run, thin, tmp_path):
        path = tmp_path / "more.csv"
        path.write_text(csv_text({"a3": "0" * 12}))  # the whole benchmark is judged, not this file
        printed = run("load", str(path), "--benchmark", "toy")
        assert "1 of 5 agents can be ranked on all 20 tasks, 5 of 5 on 12 of them" in printed
        assert "manage.py policy toy --set missing=auto" in printed
        assert "universe: all → 12 tasks" in run("policy", "toy", "--set", "missing=auto", "--dry-run")
        assert "universe: all → 12 tasks" in run("policy", "toy", "--set", "universe=common")
        names = [f"t{j:02d}" for j in range(12)]
        assert Policy.objects.get(number=2).universe == names
        path.write_text(csv_text({"few": "1"}))
        assert "universe" not in run("load", str(path), "--benchmark", "toy")
        assert Policy.objects.latest("number").universe == names

    def test_load_says_what_does_not_count_as_it_stands(self, run, tmp_path):
        rows = [
            {"agent": agent, "task": f"t{j:02d}", "outcome": int(mark), "judge": judge}
            for agent, marks in ladder(6, 20).items()
            for judge in (("easy",) if agent > "a03" else ("j1", "easy") if agent > "a02" else ("j1",))
            for j, mark in enumerate(marks)
        ]
        rows.append({"agent": "a00", "task": "t00", "trial": 2, "outcome": 0, "judge": "j1"})
        path = tmp_path / "judges.csv"
        path.write_text(rows_text(rows))
        printed = run("load", str(path), "--benchmark", "toy")
        left_out = "left out: judge easy (full runs of 3 agents)"
        assert f"Agents are compared under judge j1; {left_out}.\n" in printed
        assert (
            "2 agents ran only under judge easy; this board compares judge j1. These results do not "
            "count; the agents are not ranked (a04, a05).\n"
        ) in printed
        assert "1 of 6 agents has fewer trials on some tasks than on others: " in printed
        assert "left out" not in run("load", str(path), "--benchmark", "toy", "--dry-run")

    def test_load_says_of_which_agents_the_harness_lost_too_much(self, run, tmp_path):
        rows = [
            {"agent": agent, "task": f"t{j:02d}", "judge": judge} | outcome
            for agent, marks in ladder(6, 20).items()
            for judge in (("j1", "easy") if agent > "a03" else ("j1",))
            for j, mark in enumerate(marks)
            for outcome in [
                {"outcome": "", "valid": 0}
                if j < 2 and judge == "j1" and agent > "a03"
                else {"outcome": int(mark), "valid": 1}
            ]
        ]
        path = tmp_path / "judges.csv"
        path.write_text(rows_text(rows))
        printed = run("load", str(path), "--benchmark", "toy")
        assert (
            "2 agents lack results on more than 5% of tasks under judge j1, so they are not ranked "
            "(a04, a05).\n"
        ) in printed
        assert "alone" not in printed

    def test_load_names_agents_of_which_only_passes_are_there(self, run, tmp_path):
        path = tmp_path / "passes.csv"
        path.write_text(csv_text(ladder(6, 20) | {"lucky": "1" * 8}))
        assert (
            "1 agent has only passes and lacks tasks or trials: lucky; if its failures were left out, its "
            "score is too high.\n"
        ) in run("load", str(path), "--benchmark", "toy")

    def test_fewer_than_ten_are_refused(self, db):
        load_text(csv_text({"a": "1" * 9 + ".", "b": "1" * 10}))
        with refused(Conflict, "too_few_common_tasks", match="Only 9 tasks"):
            common_tasks(Benchmark.objects.get())


class TestCorrections:
    def test_a_load_counts_invalid_results_beside_the_new(self, run, db, tmp_path):
        path = tmp_path / "toy.csv"
        path.write_text(csv_text({"a": "1xx"}))
        for end in ("--dry-run",), ():
            assert ": 3 new results (2 invalid); 1 submission" in run(
                "load", str(path), "--benchmark", "toy", *end
            )
        assert ": 0 new results, 3 already" in run("load", str(path), "--benchmark", "toy")

    def test_unload_the_latest(self, run, toy):
        assert "Withdrew 16 submissions with 320 outcomes from toy." in run(
            "unload", "toy", "--latest", "--reason", "the wrong file"
        )
        assert deliveries(toy) == []

    def test_unload_by_name(self, run, toy):
        ids = [str(uuid) for uuid in Submission.objects.values_list("uuid", flat=True)[:2]]
        assert "Withdrew 2 submissions" in run("unload", *ids, "--reason", "broken")
        assert len(deliveries(toy)) == 14

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["toy", "--reason", "x"], "Not a submission id"),
            (["toy", "--latest", "--reason", " "], "--reason is empty"),
            (["toy", "other", "--latest", "--reason", "x"], "one benchmark"),
            (["0" * 32, "--reason", "x"], "There is no submission"),
        ],
    )
    def test_unload_refuses(self, run, toy, arguments, words):
        with pytest.raises(CommandError, match=words):
            run("unload", *arguments)
        assert len(deliveries(toy)) == 16

    def test_confirm_and_approve_refuse_what_needs_neither(self, run, toy):
        uuid = str(Submission.objects.values_list("uuid", flat=True)[0])
        with pytest.raises(CommandError, match="Nothing to confirm"):
            run("confirm", uuid)
        with pytest.raises(CommandError, match="nothing needs to be approved"):
            run("approve", "toy", "a00", "--reason", "x")
        with pytest.raises(CommandError, match="Unknown agent 'nobody'"):
            run("approve", "toy", "nobody", "--reason", "x")


class TestStated:
    """What a file says of agents and runs beside their outcomes."""

    ROWS = (
        {"agent": "a", "task": "t1", "run": "r1", "version": "1.2", "organisation": "Acme"},
        {"agent": "a", "task": "t2", "run": "r1", "version": "1.2"},
        {"agent": "a", "task": "t1", "run": "r2", "version": "1.2"},
        {"agent": "b", "task": "t1", "run": "r1"},
    )

    def load(self, *changes, **options):
        rows = [row | {"outcome": 1} | more for row, more in zip(self.ROWS, changes or [{}] * 4, strict=True)]
        return load_text(rows_text(rows), **options)

    def test_of_agents(self, db):
        self.load()
        said = Agent.objects.order_by("name").values_list("name", "version", "organisation")
        assert list(said) == [("a", "1.2", "Acme"), ("b", "", "")]
        assert not OutcomeDetail.objects.exists()

    @pytest.mark.parametrize(
        ("column", "texts", "expected"),
        [
            ("weights", ("open", "", "open", "Closed"), ["open", "closed"]),
            ("open_model", ("True", "True", "True", "0"), ["open", "closed"]),
            ("weights", ("open", "open", "open", "0.25"), ["", ""]),
            ("weights", ("open", "closed", "open", "open"), ["", ""]),
        ],
    )
    def test_weights_of_the_model(self, db, column, texts, expected):
        """A column that says something else, or two things of an agent, stays with the outcomes."""
        self.load(*({column: text} for text in texts))
        assert list(Agent.objects.order_by("name").values_list("weights", flat=True)) == expected
        assert OutcomeDetail.objects.exists() == (expected == ["", ""])
        self.load(*({"weights": "open"} for _ in texts))  # what was stated stays
        first = "open" if expected == ["", ""] else expected[1]
        assert Agent.objects.get(name="b").weights == first

    def test_the_address_of_the_commit_too(self, db):
        """As an export writes what was delivered with one."""
        self.load({}, {}, {}, {"commit": "https://example.org/c"})
        assert [one.links for one in Submission.objects.order_by("id")][-1] == {
            "commit": "https://example.org/c"
        }

    def test_of_runs(self, db):
        logs = [{"logs": f"https://example.org/{n}", "code": ""} for n in (1, 1, 2)]
        self.load(*logs, {"code": "https://example.org/b"})
        links = Submission.objects.order_by("id").values_list("agent__name", "links")
        assert list(links) == [
            ("a", {"logs": "https://example.org/1"}),
            ("a", {"logs": "https://example.org/2"}),
            ("b", {"code": "https://example.org/b"}),
        ]

    @pytest.mark.parametrize(
        "changes",
        [
            [{"link": "https://example.org/1"}, {"link": "https://example.org/2"}, {}, {}],
            [{"link": "see below"}, {}, {}, {}],
            [{"link": "javascript:alert(1)"}, {}, {}, {}],
            [{"logs": "http://"}, {}, {}, {}],
            [{"logs": "https://x:99999/"}, {}, {}, {}],
            [{"logs": "https://github.com@evil.example/x"}, {}, {}, {}],
        ],
    )
    def test_what_is_no_one_address_stays_metadata(self, db, changes):
        self.load(*changes)
        assert all(submission.links == {} for submission in Submission.objects.all())
        assert all(set(detail.metadata) == set(changes[0]) for detail in OutcomeDetail.objects.all())

    def test_a_version_stated_later_is_filled_in_and_no_other(self, db):
        load_text(f"{HEAD}\nToy,a,Loop,Model a,2026-01-05,t1,1,1\n")
        self.load()
        assert Agent.objects.get(name="a").version == "1.2"
        assert Benchmark.objects.get().shown_version == 1
        with pytest.raises(Exception, match=r"version '1.2', but was delivered with version '2'"):
            self.load(*[{"version": "2"}] * 3, {})


def test_a_preview_of_nothing_is_empty(run, db):
    Policy.objects.create(benchmark=Benchmark.objects.create(slug="empty", title="Empty"), number=1)
    assert "strategy: mid_range → random" in run("policy", "empty", "--set", "strategy=random", "--dry-run")


def test_nothing_is_offered_where_agents_are_complete(toy):
    assert offer_text(toy) == ""


# ------------------------------------------------------------------------------------------------- the groups


def test_help_lists_every_command_once_daily_ones_first():
    shown = CommandLine(["manage.py", "help"]).main_help_text()
    own = [name for name, app in get_commands().items() if app == "leaderboard.terminal"]
    for name in own:
        first, _, _ = load_command_class("leaderboard.terminal", name).help.partition(". ")
        line = rf"^  {name} +{re.escape(first.removesuffix('.'))}\.$"
        assert (
            len(re.findall(line, shown, re.MULTILINE))
            == len(re.findall(rf"^  {name} ", shown, re.MULTILINE))
            == 1
        )
    places = [shown.index(f"\n{group}\n") for group in ("Daily", "Occasional", "Rare")]
    assert places == sorted(places)
    assert shown.index("  load ") < places[1] < shown.index("  export ") < places[2] < shown.index("  erase ")
    assert not any("runserver" in line for line in shown.splitlines())


def test_four_fields_of_a_policy_are_basic_and_changed_ones_are_shown_too(toy, run):
    few, every = run("policy", "toy"), run("policy", "toy", "--advanced")
    assert set(re.findall(r"^  (\w+) ", few, re.MULTILINE)) == set(Policy.BASIC)
    assert set(re.findall(r"^  (\w+) ", every, re.MULTILINE)) == set(RULES)
    assert every.count("(advanced)") == len(RULES) - len(Policy.BASIC)
    assert max(map(len, every.splitlines())) <= 110
    run("policy", "toy", "--set", "podium=5")
    assert re.search(r"^  podium +5  \(advanced\)$", run("policy", "toy"), re.MULTILINE)
