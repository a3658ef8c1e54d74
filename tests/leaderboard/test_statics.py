"""Static files: a hashed name for a year, any other for a minute, and gzip only of what it makes smaller."""

import gzip
from hashlib import sha256

import pytest
from django.core.management import call_command
from django.templatetags.static import static

from leaderboard.settings import folder

SHEET = folder("static") / "css" / "bandstand.css"
GZIP = {"Accept-Encoding": "br, gzip"}


@pytest.fixture(params=[True, False], ids=["looked up", "listed"])
def get(client, settings, request):
    """Answers with what they sent, their files closed."""
    settings.WHITENOISE_AUTOREFRESH = request.param

    def do(address, **headers):
        answer = client.get(address, headers=headers)
        sent = b"".join(answer) if answer.streaming else answer.content
        answer.close()
        return answer, sent

    return do


def test_a_name_holds_the_hash_of_its_file():
    digest = sha256(SHEET.read_bytes()).hexdigest()[:12]
    assert static("css/bandstand.css") == f"/static/css/bandstand.{digest}.css"
    assert static("css/nowhere.css") == "/static/css/nowhere.css"


def test_it_is_kept_for_a_year_under_that_name_alone(get):
    hashed, sheet = get(static("css/bandstand.css"))
    assert hashed["Cache-Control"] == "max-age=31536000, public, immutable"
    assert sheet == SHEET.read_bytes()
    # The second is of a page that was kept for longer than its sheet.
    for name in ("bandstand.css", "bandstand.0123456789ab.css"):
        plain, sheet = get(f"/static/css/{name}")
        assert "immutable" not in plain["Cache-Control"]
        assert sheet == SHEET.read_bytes()
    assert get("/static/css/nowhere.0123456789ab.css")[0].status_code == 404


def test_text_is_compressed_for_those_who_can_read_that(get):
    answer, sent = get(static("css/bandstand.css"), **GZIP)
    assert answer["Content-Encoding"] == "gzip"
    assert int(answer["Content-Length"]) == len(sent) < SHEET.stat().st_size / 3
    assert gzip.decompress(sent) == SHEET.read_bytes()
    whole, _ = get(static("css/bandstand.css"))
    assert answer["Vary"] == whole["Vary"] == "Accept-Encoding"


def test_a_font_a_part_and_what_is_known_already_are_sent_as_they_are(get):
    address = static("css/bandstand.css")
    font, _ = get(static("fonts/source-serif-4.woff2"), **GZIP)
    part, sent = get(address, **GZIP, Range="bytes=0-9")
    whole, _ = get(address, **GZIP)
    known, nothing = get(address, **GZIP, **{"If-None-Match": whole["ETag"]})
    assert "Content-Encoding" not in font
    assert (part.status_code, sent) == (206, SHEET.read_bytes()[:10])
    assert (known.status_code, nothing) == (304, b"")


def test_a_folder_of_collected_files_is_addressed_by_plain_names(settings, tmp_path):
    settings.STATIC_ROOT = str(tmp_path)
    call_command("collectstatic", interactive=False, verbosity=0)
    assert static("css/bandstand.css") == "/static/css/bandstand.css"
    assert (tmp_path / "css" / "bandstand.css").exists()
