"""Downloads: outcomes as streams out of one snapshot, boards as files, and what their columns hold."""

import errno
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api.errors import MEDIA_TYPE, RETRY_AFTER, problem
from leaderboard.api.parameters import Parameters, one_of
from leaderboard.api.views import BaseEndpoint
from leaderboard.boards import export as boards
from leaderboard.boards.queries import board_numbered, latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.versions import versions_file
from leaderboard.submissions.export.columns import MEDIA_TYPES
from leaderboard.submissions.export.outcomes import AT_ONCE, ExportTransaction, OutcomeRows, about_of, enter
from leaderboard.submissions.export.streams import FORMATS, with_end_mark

logger = logging.getLogger(__name__)
MAX_CITATION = 1_000  # characters in a header
TAKEN_WITHIN = 60  # seconds in which a reader takes something, or loses its place
MARKED = '{"end": true, "n": 5304, "sha256": "…"}'
END_MARK: Parameters = {
    "end_mark": one_of(
        f"A last line, {MARKED}: how many rows there were, and what their bytes hash to.", ["1"]
    )
}
RESET = struct.pack("ii", 1, 0)  # linger on, for no time: closing sends RST


class ExportStream:
    """The bytes of one export. Closed, it gives back its place and its snapshot; broken, it resets.

    A reader of chunks sees a broken stream; one that reads to the end of the connection would not, and take a
    prefix for the whole: so the connection does not end in order.
    """

    def __init__(self, content: Iterator[bytes], release: Callable[[], None], wire: Any) -> None:
        self._content, self._release, self._wire = content, release, wire
        if wire is not None:
            wire.settimeout(TAKEN_WITHIN)
        self._has_ended = False

    def __iter__(self) -> "ExportStream":
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._content)
        except StopIteration:
            self._has_ended = True
            self.close()
            raise
        except Exception as error:
            self.close()
            if self._wire is None:
                raise
            logger.exception("An export broke off.")
            self._wire.close()
            raise ConnectionResetError(errno.ECONNRESET, "The export broke off.") from error

    def close(self) -> None:
        """Give back what is held; of one that nobody took to its end the connection is reset too."""
        if not self._has_ended and self._wire is not None:
            with suppress(OSError):
                self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._release()


class DownloadView(BaseEndpoint):
    """What anybody may take who may see the benchmark; `kind` is the format, told by the address."""

    kind = "json"
    subject = "downloads"

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[BaseRenderer, str]:
        """The address names the format, whatever a client says it accepts."""
        return JSONRenderer(), JSONRenderer.media_type or ""

    def headers_of(self, request: Request, name: str) -> dict[str, str]:
        return {
            "Content-Disposition": f'attachment; filename="{name}.{self.kind}"',
            "Cache-Control": "private, no-store" if request.auth else "public, max-age=0, must-revalidate",
        }

    def marked(self, content: Iterator[bytes], n_rows: int) -> Iterator[bytes]:
        return with_end_mark(content, n_rows) if self.has_mark else content

    @property
    def has_mark(self) -> bool:
        return self.query.get("end_mark") is not None


class OutcomesDownload(DownloadView):
    """All outcomes that count, a row for each trial."""

    def get(self, request: Request, slug: str) -> HttpResponseBase:
        opened = ExitStack()
        try:
            if not enter(opened):
                detail = f"{AT_ONCE} exports are running, as many as this process runs at a time;"
                content = problem(HTTPStatus.SERVICE_UNAVAILABLE, "exports_busy", f"{detail} try again soon.")
                later = {"Retry-After": RETRY_AFTER}
                return Response(content, status=content["status"], headers=later, content_type=MEDIA_TYPE)
            response = self._response(request, self.benchmark, opened)
        except BaseException:
            opened.close()
            raise
        if request.method == "HEAD" or not response.streaming:
            opened.close()
        return response

    def _response(self, request: Request, benchmark: Benchmark, opened: ExitStack) -> HttpResponseBase:
        snapshot = opened.enter_context(ExportTransaction(benchmark))
        policy, about = policy_in_force(benchmark), snapshot.about
        kind = f"{self.kind}-marked" if self.has_mark else self.kind
        etag = f'"{about.data_version}.{about.shown_version}.{policy.number}.{kind}"'
        # Here, where what is open can be closed; the middleware would leave it open.
        if unchanged := get_conditional_response(request._request, etag=etag):
            unchanged["ETag"] = etag
            return unchanged
        outcomes = OutcomeRows(snapshot, costs=policy.show_costs)
        headers = self.headers_of(request, f"{about.slug}-outcomes") | {"ETag": etag}
        # What says whether a download is whole, and of what; texts are percent-encoded
        texts = {"Licence": about.licence, "Citation": about.citation[:MAX_CITATION]}
        dictionary = reverse("api:data_dictionary", args=[about.slug])
        headers |= {
            "Bandstand-Rows": str(outcomes.n_rows),
            "Bandstand-Data-Version": str(about.data_version),
            "Link": f'<{dictionary}>; rel="describedby"',
            **{f"Bandstand-{name}": quote(text) for name, text in texts.items() if text},
            "Content-Type": MEDIA_TYPES[self.kind],
        }
        if self.kind == "parquet":
            headers["Content-Encoding"] = "identity"  # it is compressed already
        if request.method == "HEAD":
            return StreamingHttpResponse((), headers=headers)  # without a length, as its body would be
        wire = request._request.META.get("gunicorn.socket")
        content = self.marked(FORMATS[self.kind](outcomes), outcomes.n_rows)
        stream = ExportStream(content, opened.close, wire)
        return StreamingHttpResponse(stream, headers=headers)


class BoardDownload(DownloadView):
    """The latest board, an agent a row."""

    def get(self, request: Request, slug: str, number: int | None = None) -> HttpResponseBase:
        board = latest_board(self.benchmark) if number is None else board_numbered(self.benchmark, number)
        rows = boards.rows_of(board, costs=False)
        headers = self.headers_of(request, f"{slug}-board-{board.number}") | {
            "Bandstand-Rows": str(len(rows)),
            "Bandstand-Data-Version": str(board.data_version),
            "Bandstand-Digest": board.digest,
            "Content-Type": MEDIA_TYPES[self.kind],
        }
        content = self.marked(iter([boards.FORMATS[self.kind](rows)]), len(rows))
        return HttpResponse(b"".join(content), headers=headers)


class BoardNumberedDownload(BoardDownload):
    """The board of this number, an agent a row."""


class SubsetsDownload(DownloadView):
    """What was decided about the benchmark; it makes the same board of its outcomes elsewhere."""

    def get(self, request: Request, slug: str) -> HttpResponseBase:
        return Response(versions_file(self.benchmark), headers=self.headers_of(request, f"{slug}-subsets"))


class DataDictionary(DownloadView):
    """What the columns of the downloads hold, with the licence and the citation of the data."""

    def get(self, request: Request, slug: str) -> HttpResponseBase:
        with ExportTransaction(self.benchmark) as snapshot:
            outcomes = OutcomeRows(snapshot, costs=policy_in_force(self.benchmark).show_costs)
        addresses = {kind: reverse(f"api:outcomes_{kind}", args=[slug]) for kind in FORMATS}
        content = about_of(outcomes.snapshot.about) | {
            "n": outcomes.n_rows,
            "outcomes": {"columns": [column.as_plain() for column in outcomes.columns]} | addresses,
            "board": {"columns": [column.as_plain() for column in boards.columns()]},
        }
        return Response(content, headers={"Cache-Control": self.headers_of(request, slug)["Cache-Control"]})
