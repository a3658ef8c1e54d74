from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from analytics.names import NOT_STATED
from leaderboard.catalog import queries
from leaderboard.catalog.models import Agent, Benchmark, Model, Scaffold, Visibility, folded
from leaderboard.catalog.services import (
    AgentDescription,
    AgentMismatch,
    complete_agents,
    ensure_agents,
    ensure_tasks,
    get_or_create_benchmark,
    grouped_tasks,
)
from leaderboard.errors import Conflict
from tests.refusals import refused

NAMES = [
    "Alpha",
    "ALPHA-2",
    "Éclair",
    "éclair",
    "İstanbul",
    "straße",
    "STRASSE",
    "ΑΓΩ",
    "naïve/#'\" x",
    "🤖 Bot",
]


@pytest.fixture
def benchmark(db):
    return get_or_create_benchmark(slug="toy", title="Toy")[0]


@pytest.fixture
def ada(django_user_model):
    return django_user_model.objects.create_user("ada@example.org")


def described(name="Alpha", scaffold="Loop", model="M 1", **more):
    return AgentDescription(name, scaffold, model, **more)


@pytest.mark.parametrize("name", NAMES)
def test_folded_is_what_the_constraint_computes(db, name):
    with connection.cursor() as cursor:
        cursor.execute('SELECT lower(%s COLLATE "C")', [name])
        assert cursor.fetchone() == (folded(name),)


def test_agents_are_found_again_whatever_their_script(benchmark):
    descriptions = [described(name) for name in NAMES]
    made = ensure_agents(benchmark=benchmark, descriptions=descriptions, owner=None)
    found = ensure_agents(benchmark=benchmark, descriptions=descriptions, owner=None)
    assert made == found
    assert Agent.objects.count() == len(NAMES)


def test_another_spelling_of_an_agent_is_refused_by_name(benchmark):
    ensure_agents(benchmark=benchmark, descriptions=[described("Alpha")], owner=None)
    with refused(
        AgentMismatch,
        "agent_described_otherwise",
        match=r"'alpha' is known here with name 'Alpha'.* spell it as before\.$",
    ):
        ensure_agents(benchmark=benchmark, descriptions=[described("alpha")], owner=None)


@pytest.mark.parametrize("name", ["É-5", "E\u0301-5", "\uff25\u0301\uff0d\uff15", "é-\uff15"])
def test_a_new_agent_that_reads_like_a_known_one_is_refused(benchmark, name):
    """Composed, decomposed, wide and lower-case forms of one name."""
    ensure_agents(benchmark=benchmark, descriptions=[described("é-5")], owner=None)
    with refused(AgentMismatch, "looks_like_another", match=r"reads like 'é-5', which already exists"):
        ensure_agents(benchmark=benchmark, descriptions=[described(name)], owner=None)
    ensure_agents(benchmark=benchmark, descriptions=[described("é-6")], owner=None)


@pytest.mark.parametrize("name", ["С1audе", "Cl4ude", "CIaude"])
def test_an_account_may_not_take_a_name_that_looks_like_a_known_one(benchmark, ada, name):
    """Cyrillic С and е and the digit 1; a capital I. A 4 is no a."""
    ensure_agents(benchmark=benchmark, descriptions=[described("Claude")], owner=None)
    new = [described(name, "Tree")]
    if name == "Cl4ude":
        assert ensure_agents(benchmark=benchmark, descriptions=new, owner=ada)[name].owner == ada
        return
    with refused(AgentMismatch, "looks_like_another", match=r"reads like 'Claude', which already exists"):
        ensure_agents(benchmark=benchmark, descriptions=new, owner=ada)
    assert ensure_agents(benchmark=benchmark, descriptions=new, owner=None)[name].owner is None
    assert ensure_agents(benchmark=benchmark, descriptions=new, owner=ada)[name].owner is None  # known by now


@pytest.mark.parametrize("change", [{"scaffold": "Tree"}, {"model": "M 2"}, {"version": "2"}])
def test_agent_does_not_change_what_it_is(benchmark, change):
    ensure_agents(benchmark=benchmark, descriptions=[described(version="1")], owner=None)
    with refused(AgentMismatch, "agent_described_otherwise") as refusal:
        ensure_agents(benchmark=benchmark, descriptions=[described(**{"version": "1"} | change)], owner=None)
    (field,) = change
    assert refusal.value.details["agents"][0]["stored"][field] in str(refusal.value)
    assert change[field] in str(refusal.value)


def test_an_operator_states_what_nobody_stated_and_a_submitter_does_not(benchmark, ada):
    nothing = described(scaffold="NOT STATED", model="Not stated")  # is stored in the one spelling
    ensure_agents(benchmark=benchmark, descriptions=[nothing], owner=ada)
    with refused(AgentMismatch, "agent_described_otherwise", match="'not stated'.*'not stated'"):
        ensure_agents(benchmark=benchmark, descriptions=[described()], owner=ada)
    stated = [described(model=NOT_STATED)]
    with refused(AgentMismatch, "agent_described_otherwise", match="ada.* owns the name"):
        ensure_agents(benchmark=benchmark, descriptions=stated, owner=None)
    Agent.objects.update(owner=None)
    agents = ensure_agents(benchmark=benchmark, descriptions=stated, owner=None)
    for n in (1, 0):
        assert complete_agents(benchmark=benchmark, agents=agents, descriptions=stated) == n
    agent = Agent.objects.get()
    assert (agent.scaffold.name, agent.model.name) == ("Loop", NOT_STATED)
    agents = ensure_agents(benchmark=benchmark, descriptions=[nothing], owner=None)
    assert complete_agents(benchmark=benchmark, agents=agents, descriptions=[nothing]) == 0
    with refused(AgentMismatch, "agent_described_otherwise", match="'Loop'.*'Tree'"):
        ensure_agents(benchmark=benchmark, descriptions=[described(scaffold="Tree")], owner=None)


def test_scaffolds_and_models_are_shared_without_regard_to_case(benchmark):
    ensure_agents(benchmark=benchmark, descriptions=[described("a", "Loop", "M")], owner=None)
    ensure_agents(benchmark=benchmark, descriptions=[described("b", "LOOP", "m")], owner=None)
    assert list(Scaffold.objects.values_list("name", flat=True)) == ["Loop"]
    assert list(Model.objects.values_list("name", flat=True)) == ["M"]


def test_tasks_are_made_once_and_take_a_category_later(benchmark):
    assert ensure_tasks(benchmark=benchmark, categories={"b/1#x": None, "a": "easy"}) == 2
    assert ensure_tasks(benchmark=benchmark, categories={"b/1#x": "hard", "a": None}) == 0
    assert dict(benchmark.tasks.values_list("name", "category")) == {"a": "easy", "b/1#x": "hard"}


def test_a_task_does_not_change_its_category(benchmark):
    ensure_tasks(benchmark=benchmark, categories={"a": "easy"})
    with refused(Conflict, "task_in_another_category", match=r"'a' is in the category 'easy', but .* 'hard'"):
        ensure_tasks(benchmark=benchmark, categories={"a": "hard", "b": "easy"})
    assert benchmark.tasks.count() == 1


def test_a_task_takes_a_group_later_and_keeps_it(benchmark):
    assert ensure_tasks(benchmark=benchmark, categories={"a": None, "b": None}, groups={"a": "g"}) == 2
    assert ensure_tasks(benchmark=benchmark, categories={"b": None}, groups={"b": "h"}) == 0
    assert grouped_tasks(benchmark) == {"a": ("", "g"), "b": ("", "h")}
    with refused(Conflict, "task_in_another_group", match=r"'a' is in the group 'g', but .* 'h'"):
        ensure_tasks(benchmark=benchmark, categories={"a": None}, groups={"a": "h"})


def test_task_order_is_by_code_point(benchmark):
    names = ["b", "B", "é", "Z", "a", "10", "9", "_"]
    ensure_tasks(benchmark=benchmark, categories=dict.fromkeys(names))
    assert list(queries.active_tasks(benchmark).values_list("name", flat=True)) == sorted(names)


@pytest.mark.parametrize("flag", ["frozen", "hidden", "full_runs_only"])
def test_a_switch_says_why(benchmark, flag):
    with pytest.raises(IntegrityError), transaction.atomic():
        Benchmark.objects.filter(pk=benchmark.pk).update(**{f"{flag}_at": "2026-01-01T00:00Z"})
    Benchmark.objects.filter(pk=benchmark.pk).update(
        **{f"{flag}_at": "2026-01-01T00:00Z", f"{flag}_reason": "maintenance"}
    )


def test_private_and_hidden_benchmarks_do_not_exist_for_strangers(benchmark, django_user_model):
    stranger = django_user_model.objects.create_user("eve@example.org")
    member = django_user_model.objects.create_user("ada@example.org")
    member.memberships.create(benchmark=benchmark, role="viewer")
    Benchmark.objects.filter(pk=benchmark.pk).update(visibility=Visibility.PRIVATE)
    for user in (None, stranger):
        with pytest.raises(queries.NoSuchBenchmark, match=r"There is no benchmark 'toy'\."):
            queries.visible_benchmark("toy", user)
    assert queries.visible_benchmark("toy", member) == benchmark
    Benchmark.objects.filter(pk=benchmark.pk).update(
        visibility=Visibility.PUBLIC, hidden_at="2026-01-01T00:00Z", hidden_reason="a leak"
    )
    with pytest.raises(queries.NoSuchBenchmark):
        queries.visible_benchmark("toy", None)


@pytest.mark.django_db(transaction=True)
def test_two_deliveries_of_one_new_agent_make_it_once():
    benchmark, _ = get_or_create_benchmark(slug="toy", title="Toy")

    def deliver(_):
        try:
            with transaction.atomic():
                return ensure_agents(benchmark=benchmark, descriptions=[described()], owner=None)["Alpha"].pk
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(deliver, range(8)))) == 1
