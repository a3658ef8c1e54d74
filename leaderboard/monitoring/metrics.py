"""`/metrics`, for who holds METRICS_TOKEN or asks from one of METRICS_NETWORKS; to others it is not there.

It names benchmarks that are private, too.
"""

import hmac
from itertools import chain

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from leaderboard.counters import of_all_processes
from leaderboard.monitoring.state import State
from leaderboard.visitors import address_of, directly_from


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not (_has_token(request) or _is_near(request)):
        raise Http404
    state = CollectorRegistry(auto_describe=False)
    state.register(State(timezone.now()))
    told = chain.from_iterable(map(generate_latest, (of_all_processes(), state)))
    return HttpResponse(bytes(told), content_type=CONTENT_TYPE_LATEST)


def _has_token(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    expected = settings.METRICS_TOKEN.encode()
    return bool(expected) and hmac.compare_digest(given, expected)


def _is_near(request: HttpRequest) -> bool:
    address = directly_from(request) or address_of(request)
    return address is not None and any(address in network for network in settings.METRICS_NETWORKS)
