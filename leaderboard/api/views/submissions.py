"""Parse, one call, answer."""

from typing import cast

from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.accounts.models import ApiToken
from leaderboard.api.parsers import require_length
from leaderboard.api.permissions import MaySubmit
from leaderboard.api.views.asked import benchmark_for
from leaderboard.operations.intake import submit

MAX_KEY_LENGTH = 255


class SubmissionsView(APIView):
    """Deliver one agent's outcomes."""

    permission_classes = (MaySubmit,)

    def post(self, request: Request, slug: str) -> Response:
        benchmark = benchmark_for(request, slug)
        self.check_object_permissions(request, benchmark)
        if request.query_params:
            named = ", ".join(sorted(request.query_params)[:5])
            raise ParseError(f"A delivery takes no parameter in its address, and was given {named[:200]}.")
        require_length(request)
        receipt = submit(
            benchmark=benchmark,
            token=cast("ApiToken", request.auth),  # MaySubmit has seen it
            body=request.data,
            idempotency_key=_idempotency_key(request),
            as_of=timezone.now(),
        )
        links = {"board": request.build_absolute_uri(reverse("api:board", args=[slug]))}
        headers = {"Idempotent-Replayed": "true"} if receipt.replayed else {}
        return Response(receipt.content | {"links": links}, status=201, headers=headers)


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        raise ParseError(
            "An Idempotency-Key has 1 to 255 printable ASCII characters.", code="malformed_idempotency_key"
        )
    return key
