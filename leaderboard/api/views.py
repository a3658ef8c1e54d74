"""Parse, one call, answer."""

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api.delivering import delivered
from leaderboard.api.parsers import BoundedJSON, BoundedMultipart
from leaderboard.api.permissions import Anyone, MaySubmit, reaches, token_in
from leaderboard.boards.presentation import visible
from leaderboard.boards.queries import latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmark


def benchmark_for(request: Request, slug: str) -> Benchmark:
    """Return the benchmark as the token's owner sees it, or as a stranger where the token does not reach."""
    token = token_in(request)
    benchmark = visible_benchmark(slug, token.user if token else None)
    return benchmark if token is None or reaches(token, benchmark) else visible_benchmark(slug, None)


class BoardView(APIView):
    """The latest board."""

    permission_classes = (Anyone,)

    def get(self, request: Request, slug: str) -> Response:
        board = latest_board(benchmark_for(request, slug))
        cache = "private, no-store" if request.auth else "public, max-age=0, must-revalidate"
        return Response(visible(board), headers={"Cache-Control": cache})


class SubmissionsView(APIView):
    """Deliver one agent's outcomes."""

    permission_classes = (MaySubmit,)
    parser_classes = (BoundedJSON, BoundedMultipart)

    def post(self, request: Request, slug: str) -> Response:
        benchmark = benchmark_for(request, slug)
        self.check_object_permissions(request, benchmark)
        return delivered(request, benchmark)
