"""The picture beside a link: bars where the ranks say, and words beside it that are data."""

import struct
import zlib

import numpy as np
import pytest

from leaderboard.catalog.models import Benchmark
from leaderboard.pages.elsewhere import (
    ABOVE,
    HEIGHT,
    MARGIN,
    MAX_AGENTS,
    SIGNATURE,
    THICK,
    THIN,
    WIDTH,
    Canvas,
    draw_card,
)
from leaderboard.plots.marks import PAINT
from tests.leaderboard.pages.counting import HOSTILE
from tests.toys import graded


def read(png):
    """A decoder of its own, for what the pictures use of PNG."""
    assert png[:8] == SIGNATURE
    at, parts = 8, {}
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        parts[kind] = content
        at += 12 + length
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def colour(name):
    return tuple(bytes.fromhex(PAINT[name][1:]))


def test_a_disc_and_a_bar_stand_where_they_are_put():
    canvas = Canvas(40, 20)
    canvas.bar(10, 5, 20, 10, fill="tied")
    pixels = read(canvas.png())
    assert pixels.shape == (20, 40, 3)
    is_bar = (pixels == colour("tied")).all(axis=2)
    assert is_bar[5:15, 15:25].all()  # straight between its round ends
    assert not is_bar[:5].any()
    assert not is_bar[15:].any()
    assert is_bar[10, 11]
    assert not is_bar[5, 10]  # a corner is round
    is_paper = (pixels == colour("paper")).all(axis=2)
    assert is_paper[:, :10].all()
    assert is_paper[:, 30:].all()
    # a disc of radius 5 has 25π pixels, and the two halves and the square of the bar as many as that and 100
    share = (pixels[..., 0] - 253.0) / (colour("tied")[0] - 253.0)
    assert share.sum() == pytest.approx(100 + 25 * np.pi, abs=2)


def test_bars_stand_at_their_ranks():
    pixels = read(draw_card([(1, 1, 3, "first"), (2, 5, 11, "worse")], 11))
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    row, step = (HEIGHT - 2 * ABOVE) / MAX_AGENTS, (WIDTH - 2 * MARGIN) / 10
    first, second = (int(ABOVE + (i + 0.5) * row) for i in (0, 1))
    filled, worse = ((pixels == colour(name)).all(axis=2) for name in ("lead", "worse"))
    columns = np.flatnonzero(filled[first])
    assert columns.max() == pytest.approx(MARGIN + 2 * step + THICK / 2, abs=2)
    assert filled[:, MARGIN + int(step)].sum() == pytest.approx(THICK, abs=1)
    columns = np.flatnonzero(worse[second])
    assert columns.min() == pytest.approx(MARGIN + step - THICK / 2, abs=2)
    assert columns.max() == pytest.approx(MARGIN + 10 * step + THICK / 2, abs=2)
    assert worse[:, MARGIN + int(2 * step)].sum() == pytest.approx(THIN, abs=1)
    for y, rank in ((first, 1), (second, 5)):
        assert tuple(pixels[y, int(MARGIN + (rank - 1) * step)]) == colour("paper")  # the dot's middle


def test_its_address_answers_with_the_picture(client, publish):
    publish(graded(6, 20))
    answer = client.get("/b/toy/card.png")
    assert answer["Content-Type"] == "image/png"
    assert read(answer.content).shape == (630, 1200, 3)
    Benchmark.objects.update(visibility="private")
    assert client.get("/b/toy/card.png").status_code == 404


def test_without_ranks_there_is_none_and_no_page_names_it(client, publish):
    Benchmark.objects.create(slug="empty", title="Empty")
    assert client.get("/b/empty/card.png").status_code == 404
    publish({"first half": "1" * 10 + "." * 10, "second half": "." * 10 + "1" * 10})
    for page in ("/b/empty", "/b/toy/tasks", "/b/toy/data"):
        told = client.get(page).content.decode()
        assert "og:title" in told
        assert "og:image" not in told


def test_where_nobody_is_ranked_it_shows_bounds(client, publish):
    """Of half of the tasks one passed all: from 50 to 100%; the other passed one: from 5 to 55%."""
    publish({"first half": "1" * 10 + "." * 10, "second half": "." * 10 + "1" + "0" * 9})
    pixels = read(client.get("/b/toy/card.png").content)
    row, width = (HEIGHT - 2 * ABOVE) / MAX_AGENTS, WIDTH - 2 * MARGIN
    for place, (low, high) in enumerate([(0.5, 1.0), (0.05, 0.55)]):
        y = int(ABOVE + (place + 0.5) * row)
        filled = np.flatnonzero((pixels[y] == colour("tied")).all(axis=1))
        ends = filled[[0, -1]] - MARGIN
        assert ends.tolist() == pytest.approx(
            [low * width - THICK / 2, high * width + THICK / 2], abs=2.5
        )  # ends are round
    assert "Possible scores of the agents" in client.get("/b/toy").content.decode()


def test_one_agent_has_the_only_rank(client, publish):
    publish({"alone": "1" * 20})
    pixels = read(client.get("/b/toy/card.png").content)
    assert tuple(pixels[int(ABOVE + (HEIGHT - 2 * ABOVE) / MAX_AGENTS / 2), MARGIN]) == colour(
        "paper"
    )  # its dot
    assert "og:image" in client.get("/b/toy").content.decode()


def test_the_words_beside_it(client, publish, settings):
    settings.SITE_URL = "https://board.example"
    publish(graded(6, 20))
    Benchmark.objects.update(title=HOSTILE)
    page = client.get("/b/toy").content.decode()
    assert "<script>alert" not in page
    assert 'property="og:title" content="&lt;/title&gt;' in page
    assert 'property="og:image" content="https://board.example/b/toy/card.png"' in page
    assert "on all 20 tasks" in page.split('property="og:description" content="')[1].split('"')[0]
