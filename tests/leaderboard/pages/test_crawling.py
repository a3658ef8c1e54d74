"""What programs that walk the web are told."""

import xml.etree.ElementTree as ET

import pytest

from leaderboard.catalog.models import Benchmark
from tests.leaderboard.pages.conftest import AS_OF

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
OF_NO_BENCHMARK = {f"http://testserver/{page}" for page in ("", "methods", "submit")}


def listed(client):
    answer = client.get("/sitemap.xml")
    assert answer["Content-Type"] == "application/xml"
    found = ET.fromstring(answer.content)
    assert found.tag == f"{NS}urlset"
    return {url.findtext(f"{NS}loc"): url.findtext(f"{NS}lastmod") for url in found}


@pytest.fixture
def toy(publish):
    return publish({"a": "1" * 10, "b": "0" * 10})


def test_the_pages_of_public_benchmarks(client, toy):
    found = listed(client)
    at = "http://testserver"
    assert {
        f"{at}/",
        f"{at}/methods",
        f"{at}/b/toy",
        f"{at}/b/toy/history",
        f"{at}/b/toy/data",
    } <= found.keys()
    assert found[f"{at}/b/toy"] == AS_OF.isoformat()
    assert found[f"{at}/"] is None
    for address in found:
        assert client.get(address.removeprefix(at)).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [{"visibility": "private"}, {"visibility": "unlisted"}, {"hidden_at": AS_OF, "hidden_reason": "x"}],
)
def test_nothing_of_what_is_not_public(client, toy, fields):
    Benchmark.objects.update(**fields)
    assert listed(client).keys() == OF_NO_BENCHMARK


def test_addresses_are_those_of_the_site(client, toy, settings):
    settings.SITE_URL = "https://board.example"
    assert "https://board.example/b/toy" in listed(client)
    assert "Sitemap: https://board.example/sitemap.xml\n" in client.get("/robots.txt").content.decode()


def test_one_query_however_many_benchmarks(client, toy, django_assert_num_queries):
    for n in range(4):
        Benchmark.objects.create(slug=f"b{n}", title="B")
    with django_assert_num_queries(1):
        assert "http://testserver/b/b3" in listed(client)


def test_robots_are_kept_from_accounts_and_the_interface(client, db):
    answer = client.get("/robots.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    lines = answer.content.decode().splitlines()
    assert lines[0] == "User-agent: *"
    closed = {line.removeprefix("Disallow: ") for line in lines if line.startswith("Disallow")}
    assert {"/account", "/accounts/", "/admin/", "/api/"} <= closed
    assert "/" not in closed


@pytest.mark.parametrize(("visibility", "kept"), [("public", 0), ("unlisted", 1)])
def test_an_unlisted_benchmark_is_not_to_be_kept(client, toy, visibility, kept):
    Benchmark.objects.update(visibility=visibility)
    for path in ("/b/toy", "/b/toy/history", "/b/toy/data"):
        assert client.get(path).content.decode().count('name="robots" content="noindex"') == kept
