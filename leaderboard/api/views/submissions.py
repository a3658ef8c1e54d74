"""Parse, one call, answer."""

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api.delivering import delivered
from leaderboard.api.parsers import BoundedJSON, BoundedMultipart
from leaderboard.api.permissions import MaySubmit
from leaderboard.api.views.asked import benchmark_for


class SubmissionsView(APIView):
    """Deliver one agent's outcomes."""

    permission_classes = (MaySubmit,)
    parser_classes = (BoundedJSON, BoundedMultipart)

    def post(self, request: Request, slug: str) -> Response:
        benchmark = benchmark_for(request, slug)
        self.check_object_permissions(request, benchmark)
        return delivered(request, benchmark)
