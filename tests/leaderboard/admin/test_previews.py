"""What an operator is shown before something is done: in words, and drawn."""

import re

import pytest

from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.catalog.rules import RULES
from leaderboard.operations.reselections import propose
from leaderboard.operations.services import recompute
from tests.leaderboard.desk import person
from tests.toys import AS_OF, csv_text, load_text, moved


@pytest.fixture
def staff(client, db):
    client.force_login(person("staff@example.org", staff=True))
    return client


def test_the_board_after_a_retirement_is_drawn(staff):
    # without t02, which only b passes, a has 2 of 2 and b 1 of 2; with it both have 2 of 3
    load_text(csv_text({"a": "110", "b <i>": "101"}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    task = Task.objects.get(name="t02")
    page = staff.post(f"/admin/catalog/task/{task.pk}/retire/", {"reason": "broken"}).content.decode()
    assert "This would happen" in page
    assert 'class="plot shifts"' in page
    rows = re.search(r'class="desk-chart".*?<tbody>(.*?)</tbody>', page, re.S)[1]
    assert re.findall(r">([^<>]+)</t[hd]>", rows) == ["b &lt;i&gt;", "1", "2"]  # under 5 tasks: no intervals
    assert "<i>" not in page.split('class="desk-chart"')[1].split("</figure>")[0]
    task.refresh_from_db()
    assert task.retired_at is None


def test_advanced_fields_of_a_policy_are_folded_until_one_has_an_error(staff):
    load_text(csv_text({"a": "111", "b": "000"}))
    policy = Policy.objects.get()
    address = f"/admin/catalog/benchmark/{policy.benchmark_id}/policy/"
    form, refused = staff.get(address), staff.post(address, {})
    row = staff.get(f"/admin/catalog/policy/{policy.pk}/change/")
    for response in (form, refused, row):
        page = response.content.decode()
        fold = r"^(.*)<details[^>]*>\s*<summary[^>]*>(?:(?!</summary>).)*Advanced(.*?)</details>(.*)$"
        before, folded, after = re.search(fold, page, re.S).groups()
        fields = [labels(part) & RULES.keys() for part in (before, folded, after)]
        assert fields == [set(Policy.BASIC), RULES.keys() - set(Policy.BASIC), set()]
    opened = ['<details class="mb-5" open>' in one.content.decode() for one in (form, refused)]
    assert opened == [False, True]


def labels(page):
    texts = re.findall(r"<label[^>]*>([^<]+)</label>", page)
    return {text.strip().lower().replace(" ", "_") for text in texts}


def test_nothing_is_drawn_where_nobody_moves(staff):
    load_text(csv_text({"a": "111", "b": "000"}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    task = Task.objects.get(name="t02")
    page = staff.post(f"/admin/catalog/task/{task.pk}/retire/", {"reason": "broken"}).content.decode()
    assert "This would happen" in page
    assert "desk-chart" not in page


@pytest.mark.usefixtures("replayed_twice")
def test_a_proposal_draws_each_variant(staff):
    benchmark = moved()
    recompute(benchmark=benchmark, as_of=AS_OF)
    proposal = propose(benchmark=benchmark, by=None, reason="they moved", as_of=AS_OF)
    page = staff.get(f"/admin/operations/reselection/{proposal.pk}/change/").content.decode()
    told = {
        name: [one for one in variant["board"]["agents"] if one["before"]["rank"] != one["after"]["rank"]]
        for name, variant in proposal.content["variants"].items()
    }
    for name, movers in told.items():
        assert (f'class="plot shifts-{name}"' in page) == bool(movers)
