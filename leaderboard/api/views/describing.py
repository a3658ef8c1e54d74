"""The interface described: OpenAPI for programs, and pages for people, both from this server alone."""

from csp.decorators import csp_update
from django.conf import settings
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request

from leaderboard.api.permissions import Anyone
from leaderboard.api.schema import as_text
from leaderboard.api.views.base import BaseEndpoint

MEDIA_TYPE = "application/vnd.oai.openapi+json"


class SchemaView(BaseEndpoint):
    """The whole interface in OpenAPI 3.1."""

    schema = None  # it does not describe itself
    subject = "index"

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(as_text(), content_type=MEDIA_TYPE)


@method_decorator(csp_update(settings.DOCS_CONTENT), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger, its script and style from this server."""

    permission_classes = [Anyone]  # noqa: RUF012 - an instance's, by the class above
    authentication_classes = []  # noqa: RUF012
    url_name = "schema"
    url_self = None
