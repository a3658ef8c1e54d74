"""The OpenAPI description, made from what each view declares; examples, and every code that may be answered.

Only /api/schema/ and /api/docs/ import what makes it.
"""

import json
import re
from functools import lru_cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.serializers import ListSerializer

from leaderboard.api.bodies import BodySerializer, Words
from leaderboard.api.errors import MEDIA_TYPE
from leaderboard.api.parameters import QueryParameter
from leaderboard.api.permissions import Anyone
from leaderboard.api.serializers import page_of
from leaderboard.catalog.rules import RULES, described
from leaderboard.submissions.export.columns import MEDIA_TYPES

OF_FILES = {"json": "application/json"} | {kind: of.partition(";")[0] for kind, of in MEDIA_TYPES.items()}
# What bodies look like, by operation; the tests send each.
AGENT = {"name": "Tree (M 2)", "scaffold": "Tree", "model": "M 2", "version": "2026-06"}
BODIES: dict[str, dict[str, Any]] = {
    "post_assignments": {"agent": AGENT},
    "post_submissions": {
        "agent": AGENT,
        "links": {"commit": "https://example.org/tree/commit/4f1a"},
        "outcomes": [{"task": "t01", "trial": 1, "outcome": 1, "cost_usd": 0.12}],
    },
    "post_withdraw": {"reason": "run with the wrong prompt"},
    "post_reports": {
        "text": "its logs show that it read the answers",
        "board": 1,
        "contact": "eve@example.org",
    },
    "post_approve": {"variant": "plain", "reason": "two tasks have left the band"},
    "post_reject": {"reason": "two tasks are too few to compare anew"},
    "post_policy": {"values": {"n_trials": 2, "members_only": False}, "reason": "one trial is too noisy"},
    "post_freeze": {"frozen": True, "reason": "the checker is being repaired"},
}
CONDITIONAL = ("get_board", "get_outcomes_download")  # answer an ETag that is theirs
PROBLEM = {"$ref": "#/components/schemas/Problem"}
TEXT, NULLABLE = {"type": "string"}, {"type": ["string", "null"]}
FAULT = {
    "type": "object",
    "properties": {
        "row": {"type": ["integer", "null"]},
        "field": NULLABLE,
        "value": NULLABLE,
        "rule": NULLABLE,
    },
    "required": ["row", "field", "value", "rule"],
}
PROBLEM_SCHEMA = {  # other fields tell what an error of its kind is about
    "type": "object",
    "description": "An error, by RFC 9457. `type` is urn:bandstand:problem: and a code.",
    "properties": {
        **{"type": TEXT, "title": TEXT, "detail": TEXT, "status": {"type": "integer"}},
        **{"n_faults": {"type": "integer"}, "faults": {"type": "array", "items": FAULT}},
    },
    "required": ["type", "title", "status", "detail"],
    "example": {
        "type": "urn:bandstand:problem:unknown_parameter",
        "title": "Unknown parameter",
        "status": 400,
        "detail": "Unknown parameter colour. This address takes limit, offset.",
    },
}
ALWAYS = {
    400: "A parameter or the body is malformed; `detail` names it.",
    401: "The token is missing, unknown, expired or revoked.",
    404: "There is no such thing, or not for this token.",
    406: "Only JSON is answered.",
    414: "The address is longer than 4,094 bytes.",
    429: "Too many requests; Retry-After says when to come again.",
    503: "The database does not answer; Retry-After says when to come again.",
}
OF_BODIES = {
    403: "The token or its owner may not do this.",
    409: "It contradicts what is stored.",
    411: "A body states its length.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    422: "The body has faults, all told at once. Nothing was stored.",
    423: "Intake is frozen.",
}
FOR_SOME = {403: "The token or its owner may not see this.", 409: "What is stored does not carry this."}
OF_GUNICORN = (414,)  # before the service sees the request, with a page
FORMS = {
    "name": "Visible characters; one blank between words, none at either end.",
    "words": "Visible characters, blanks and line ends; not blanks alone.",
}
SUBJECTS = {
    "index": "What there is",
    "benchmarks": "Benchmarks and their tasks",
    "agents": "Agents",
    "assignments": "What an agent is asked to run",
    "submissions": "What was delivered",
    "boards": "Rankings",
    "subsets": "Which tasks new agents run",
    "studies": "Numbers behind the rankings",
    "watching": "Alerts and rerun requests",
    "downloads": "Outcomes and boards as files",
    "reselections": "Proposals of another subset",
    "rules": "Policy, and closing intake",
}


def operation_id(method: str, view: type, path: str) -> str:
    """Name an operation by its method, what the view is called, and the kind of file that the path names."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", view.__name__).lower()
    kind = re.search(r"\.(\w+)$", path)
    return f"{method.lower()}_{name.removesuffix('_view')}" + (f"_{kind[1]}" if kind else "")


class EndpointSchema(AutoSchema):
    """One address, by what its view declares (`BaseEndpoint`); of another view what can be guessed."""

    def get_operation_id(self) -> str:
        return operation_id(self.method, type(self.view), self.path)

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "subject", "") or "others"]

    def get_summary(self) -> str:
        return self.get_description().split("\n")[0].rstrip(".")

    def get_description(self) -> str:  # type: ignore[override]
        description: str = super().get_description()
        marked = re.search(rf"{self.method}: ([^.]*\.)", description)
        return marked[1][:1].upper() + marked[1][1:] if marked else description

    def get_override_parameters(self) -> list[Any]:
        declared = "parameters" if self.method == "GET" else "posted"
        return [
            OpenApiParameter(
                name=name,
                type=_parameter_schema(one),
                required=one.required,
                description=one.description,
                explode=True if one.many else None,
                style="form" if one.many else None,
            )
            for name, one in getattr(self.view, declared, {}).items()
        ]

    def get_request_serializer(self) -> Any:
        return self.view.takes if self.method == "POST" and hasattr(self.view, "takes") else None

    def get_response_serializers(self) -> Any:
        if media_type := OF_FILES.get(getattr(self.view, "kind", "")):
            form = OpenApiTypes.OBJECT if media_type == "application/json" else OpenApiTypes.BINARY
            return {(200, media_type): OpenApiResponse(form, description="The file.")}
        if self.method == "GET" and hasattr(self.view, "row"):
            return {200: OpenApiResponse(page_of(self.view.row), description="Done.")}
        one: Any = getattr(self.view, "one", None)
        statuses = getattr(self.view, "statuses", ()) if self.method == "POST" else (200,)
        return {status: OpenApiResponse(one, description="Done.") for status in statuses if one}

    def get_auth(self) -> list[dict[str, list[str]]]:
        """A token, or none where anyone may call."""
        permissions = getattr(self.view, "permissions", {"POST": None})
        needed = self.method in permissions and permissions[self.method] is not Anyone
        return [{"token": []}] if needed else [{"token": []}, {}]

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        """Name the form of texts that a pattern is too coarse for, and say that a list is not empty."""
        mapped = super()._map_serializer_field(field, direction, bypass_extensions)
        if isinstance(field, Words):
            mapped |= {"format": field.format} | ({} if field.allow_blank else {"minLength": 1})
            mapped.setdefault("description", FORMS[field.format])
        if isinstance(field, ListSerializer) and not field.allow_empty:
            mapped["minItems"] = 1
        return mapped

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        mapped = super()._map_basic_serializer(serializer, direction)
        return mapped | {"additionalProperties": False} if isinstance(serializer, BodySerializer) else mapped


def _parameter_schema(one: QueryParameter) -> dict[str, Any]:
    if one.many is None:
        return dict(one.form)
    items = {"items": dict(one.form), "minItems": one.many[0], "maxItems": one.many[1], "uniqueItems": True}
    return {"type": "array", **items}


def every_code(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Declare each error that an operation may answer, and put an example beside what it takes."""
    schemas = result["components"].setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    result["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "bst_…"}
    }
    schemas["PolicySaidRequest"]["properties"]["values"] |= {
        "properties": {name: {"description": described(name)} for name in RULES},
        "additionalProperties": False,
        "minProperties": 1,
    }
    for operations in result["paths"].values():
        for method, operation in operations.items():
            _describe(method, operation, schemas)
    result["tags"] = [{"name": name, "description": description} for name, description in SUBJECTS.items()]
    return result


def _describe(method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    codes = ALWAYS | (OF_BODIES if method == "post" else FOR_SOME)
    for status, description in sorted(codes.items()):
        content = {"text/html": {}} if status in OF_GUNICORN else {MEDIA_TYPE: {"schema": PROBLEM}}
        operation["responses"].setdefault(str(status), {"description": description, "content": content})
    if operation["operationId"].startswith(CONDITIONAL):
        operation["responses"]["304"] = {"description": "As it was when its ETag was given."}
    example = BODIES.get(operation["operationId"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if example and body is not None:
        body["example"] = example
    if operation["operationId"] == "post_submissions" and body is not None:
        operation["requestBody"]["content"]["multipart/form-data"] = _multipart_form(
            schemas["DeliveryRequest"]
        )


def _multipart_form(delivery: dict[str, Any]) -> dict[str, Any]:
    """The other form of a delivery: what the file does not say, and the file."""
    description = "As the JSON body, without `outcomes`; what the file says may be left out."
    fields = {name: field for name, field in delivery["properties"].items() if name != "outcomes"}
    parts = {
        "submission": {
            "type": "object",
            "description": description,
            "properties": fields,
            "additionalProperties": False,
        },
        "file": {"type": "string", "format": "binary", "description": "CSV, NDJSON, Parquet; .gz too."},
    }
    return {
        "schema": {"type": "object", "properties": parts, "required": ["file"]},
        "encoding": {"submission": {"contentType": "application/json"}},
    }


@lru_cache(maxsize=1)
def as_text() -> bytes:
    """The whole description; it depends on nothing but the code."""
    return json.dumps(SchemaGenerator().get_schema(request=None, public=True), ensure_ascii=False).encode()
