"""What monitors say of the ranking tasks, which runs were asked for, and how the tasks changed."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from analytics.drift.monitor import ADVICE
from leaderboard.catalog.models import Agent
from leaderboard.operations.models import Alert, RerunAgent, RerunRequest
from leaderboard.operations.services import check_drift
from leaderboard.pages.health import looks_of
from leaderboard.studies.models import ESTIMATOR_VERSION, DriftCheck
from tests.leaderboard.pages.test_studies import cells
from tests.seen import text_of
from tests.toys import board_of, csv_text, ladder

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
HARMLESS = {"to_do": "", "evidence": {}, "false_alerts_at_most": 0.0, "false_alerts_per_agent": 0.0}


@pytest.fixture
def toy(db):
    return board_of(csv_text(ladder(16, 20)), as_of=AS_OF).benchmark


def monitor(name="capability jump", state="ok", statistic=None, threshold=None, **told):
    said = {"reason": f"it is {state}", "advice": "look at <b>"}
    return (
        HARMLESS
        | said
        | {"name": name, "state": state, "statistic": statistic, "threshold": threshold}
        | told
    )


def check(benchmark, *monitors, day=1, subset=None):
    """What these monitors said on a day."""
    return DriftCheck.objects.create(
        benchmark=benchmark,
        policy=benchmark.policies.get(),
        subset=subset or benchmark.subsets.get(),
        rules="r",
        data_version=100 + day,
        estimator_version=ESTIMATOR_VERSION,
        result={"monitors": list(monitors), "reason": "", "false_alerts_a_year": 0.25},
        created_at=AS_OF + timedelta(days=day),
    )


def asked(benchmark, n=3, arrived=1):
    request = RerunRequest.objects.create(
        benchmark=benchmark,
        kind="drift",
        subset=benchmark.subsets.get(),
        reason="capability jump: it rose",
        n_tasks=20,
        opened_at=AS_OF,
        deadline=AS_OF + timedelta(days=14),
    )
    for place, agent in enumerate(Agent.objects.order_by("name")[:n]):
        RerunAgent.objects.create(
            request=request,
            agent=agent,
            sampled=True,
            inclusion=0.5,
            why="drawn at random",
            n_lacking=12,
            arrived_at=AS_OF if place < arrived else None,
        )
    return request


def test_before_any_check_it_says_when_monitors_look(client, toy):
    text = text_of(client.get("/b/toy/health"))
    assert "No monitor has run yet." in text
    assert "the monitors run after each new full run" in text
    assert "manage.py" not in text
    assert "Requested full runs" not in text
    assert "Opened" not in text
    assert "Version 1 in use" in text


def test_it_is_linked_once_there_was_an_alert(client, toy):
    assert "/b/toy/health" not in client.get("/b/toy").content.decode()
    found = check(toy, monitor(state="alert", statistic=8.0, threshold=7.0))
    Alert.objects.create(
        benchmark=toy,
        subset=toy.subsets.get(),
        monitor="capability jump",
        level="alert",
        opened_by=found,
        latest=found,
        evidence={},
        opened_at=AS_OF,
        closed_at=AS_OF + timedelta(days=1),
        closed_reason="the monitor is quiet",
    )
    source = client.get("/b/toy/health").content.decode()
    assert '<a href="/b/toy/health" aria-current="page">Health</a>' in source
    assert cells(source, "alerts") == [
        ["Capability jump", "alert", "1", "2026-06-01", "2026-06-02", "the monitor is quiet"]
    ]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["ok", "insufficient"], "No monitor raises an alert. 1 of 2 monitors have too little data."),
        (["ok", "warn"], "No alert; 1 monitor warns."),
        (["alert", "warn", "alert"], "2 monitors raise an alert."),
        (["alert"], "1 monitor raises an alert."),
    ],
)
def test_the_verdict_counts_what_monitors_say(client, toy, states, said):
    check(toy, *(monitor(name, state) for name, state in zip(ADVICE, states, strict=False)))
    assert said in text_of(client.get("/b/toy/health"))


def test_a_monitor_without_data_does_not_say_that_there_is_nothing_to_do(client, toy):
    check(toy, monitor(state="insufficient", advice="nothing to do"))
    text = text_of(client.get("/b/toy/health"))
    assert "It is insufficient." in text
    assert "Nothing to do" not in text


def test_a_monitor_says_its_state_and_what_to_do_and_is_drawn_against_its_threshold(client, toy):
    check(toy, monitor(statistic=1.5, threshold=7.0), day=1)
    check(toy, monitor(state="warn", statistic=6.25, threshold=7.0), monitor("cost per task"), day=9)
    response = client.get("/b/toy/health")
    text, source = text_of(response), response.content.decode()
    assert "Capability jump warning It is warn. What to do: Look at <b>." in text
    assert text.index("Capability jump") < text.index("Cost per task")
    assert "at most 0.25 false alerts a year" in text
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', source)
    assert rows == [("2026-06-02", "1.50", "7.00"), ("2026-06-10", "6.25", "7.00")]
    drawn = client.get("/b/toy/plots/health-capability-jump.svg")
    assert drawn["Content-Type"] == "image/svg+xml"
    assert drawn.content.decode() in source
    assert client.get("/b/toy/plots/health-cost-per-task.svg").status_code == 404


def test_levels_of_an_older_subset_are_not_drawn_on(client, toy):
    first = toy.subsets.get()
    old = check(toy, monitor(statistic=1.0, threshold=7.0), day=1)
    new = check(toy, monitor(statistic=2.0, threshold=7.0), day=2)
    assert [value for _, value, _ in looks_of([old, new], "capability jump")] == [1.0, 2.0]
    assert looks_of([old, new], "saturation") == []
    later = type(first).objects.create(
        **{
            field.name: getattr(first, field.name)
            for field in first._meta.fields
            if field.name not in ("id", "number")
        },
        number=2,
    )
    check(toy, monitor(statistic=0.5, threshold=7.0), day=3, subset=later)
    source = client.get("/b/toy/health").content.decode()
    assert re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', source) == [("2026-06-04", "0.500")]
    assert [row[0] for row in cells(source, "subsets")] == ["Version 2 in use", "Version 1"]


def test_runs_asked_for_are_told_with_how_many_arrived(client, toy):
    asked(toy)
    response = client.get("/b/toy/health")
    assert "1 of 3 submitted, deadline 2026-06-15" in text_of(response)
    assert cells(response.content.decode(), "asked") == [
        ["a00", "drawn at random", "12", "2026-06-01"],
        ["a01", "drawn at random", "12", "not yet"],
        ["a02", "drawn at random", "12", "not yet"],
    ]
    RerunRequest.objects.update(status="cancelled", closed_at=AS_OF, closed_reason="enough")
    assert "Requested full runs" not in text_of(client.get("/b/toy/health"))


def test_every_monitor_of_the_core_has_a_chart_at_its_address(client, toy):
    check(toy, *(monitor(name, statistic=1.5, threshold=7.0) for name in ADVICE))
    addresses = [f"/b/toy/plots/health-{name.replace(' ', '-')}.svg" for name in ADVICE]
    assert len(addresses) == 12
    for address in addresses:
        assert client.get(address).status_code == 200


@pytest.mark.parametrize("n", [2, 12])
def test_it_takes_six_queries(client, toy, n, django_assert_num_queries):
    for day in range(n):
        check(toy, monitor(statistic=1.0, threshold=7.0), day=day)
    asked(toy, n=n)
    # The benchmark; checks; alerts; requests; the agents of these; versions of the subset.
    with django_assert_num_queries(6):
        client.get("/b/toy/health")


def test_a_real_check_is_shown(client, toy):
    check_drift(benchmark=toy, as_of=AS_OF)
    text = text_of(client.get("/b/toy/health"))
    assert f"of {len(ADVICE) - 1} monitors have too little data." in text
