"""How much one visitor may ask of a process: so many seconds of processor in a minute.

Pages that are kept cost next to nothing, and hardly anybody who reads spends a second; each that was never
asked for before is rendered. What is counted is what it took, so that no list of dear addresses is needed.
Requests to the interface with a token have their own limits, and what changes something its own, too. Each
process counts for itself: this keeps threads free for others, and is no account of anybody.
"""

from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from time import monotonic, thread_time

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from leaderboard.visitors import address_of, network_of

MINUTE = 60.0
MAX_VISITORS = 10_000  # that are remembered, the latest ones
DETAIL = (
    "Your address has asked for much within a minute; wait, or download what you need from the data page."
)
PROBLEM = {
    "type": "urn:bandstand:problem:too_much_asked",
    "title": "Too much asked",
    "status": int(HTTPStatus.TOO_MANY_REQUESTS),
    "detail": DETAIL,
}


class Spent:
    """Seconds by visitor, in the minute that began with the first."""

    def __init__(self) -> None:
        self._by_visitor = OrderedDict[str, tuple[float, float]]()
        self._one_at_a_time = Lock()

    def wait(self, visitor: str, most: float, now: float) -> int:
        """Seconds until this visitor is answered again; 0: at once."""
        since, spent = self._by_visitor.get(visitor, (now, 0.0))
        left = since + MINUTE - now
        return max(1, round(left)) if spent >= most and left > 0 else 0

    def add(self, visitor: str, seconds: float, now: float) -> None:
        with self._one_at_a_time:
            since, spent = self._by_visitor.get(visitor, (now, 0.0))
            is_over = now - since >= MINUTE
            self._by_visitor[visitor] = (now, seconds) if is_over else (since, spent + seconds)
            self._by_visitor.move_to_end(visitor)
            if len(self._by_visitor) > MAX_VISITORS:
                self._by_visitor.popitem(last=False)


class RateLimitMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response, self._spent = get_response, Spent()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        most, address = settings.VISITOR_SECONDS, address_of(request)
        is_counted = most and address and request.method in ("GET", "HEAD")
        has_token = request.path.startswith("/api/") and "Authorization" in request.headers
        if not is_counted or address is None or has_token:
            return self._get_response(request)
        visitor = network_of(address)
        if wait := self._spent.wait(visitor, most, monotonic()):
            headers = {"Retry-After": str(wait), "Cache-Control": "no-store"}
            status = HTTPStatus.TOO_MANY_REQUESTS
            if request.path.startswith("/api/"):
                return JsonResponse(
                    PROBLEM, status=status, content_type="application/problem+json", headers=headers
                )
            return HttpResponse(DETAIL, "text/plain; charset=utf-8", status, headers=headers)
        begun = thread_time()
        try:
            return self._get_response(request)
        finally:
            self._spent.add(visitor, thread_time() - begun, monotonic())
