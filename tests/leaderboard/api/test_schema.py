"""The description of the interface: whole, valid, from this server alone, and true."""

import re
from contextlib import suppress

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, given, settings, strategies
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation

from analytics.flat_file import name_rule
from leaderboard.api.schema import BODIES, operation_id
from leaderboard.catalog.models import Policy
from leaderboard.catalog.rules import RULES
from tests.leaderboard.api.test_routes import APART, TABLE, patterns_of
from tests.leaderboard.api.world import OPERATOR

pytestmark = pytest.mark.django_db
ROUTE_OF = {
    operation_id(method, one.callback.cls, str(one.pattern)): one.name
    for one in patterns_of("api")
    for name, method in TABLE
    if name == one.name
}


@pytest.fixture
def schema(client, db):
    return client.get("/api/schema/").json()


def operations(schema):
    return {
        operation["operationId"]: (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_is_described(schema):
    assert schema["openapi"] == "3.1.1"
    assert len(operations(schema)) == len(TABLE) + len(APART)
    written = {re.sub(r"<\w+:(\w+)>", "{}", str(one.pattern)) for one in patterns_of("api")}
    told = {re.sub(r"\{\w+\}", "{}", path.removeprefix("/api/v1/")) for path in schema["paths"]}
    assert told == written


def test_every_operation_tells_what_it_answers(schema):
    for name, (_, method, operation) in operations(schema).items():
        codes = set(operation["responses"])
        assert {"400", "401", "404", "406", "414", "503"} <= codes, name
        assert {code for code in codes if code < "300"}, name
        assert operation["summary"], name
        assert operation["tags"] != ["others"], name
        if method == "post":
            assert {"409", "411", "413", "415", "422"} <= codes, name
        for code, answer in operation["responses"].items():
            if code >= "400":
                kind = "text/html" if code == "414" else "application/problem+json"  # gunicorn's own
                assert list(answer["content"]) == [kind]


def test_who_needs_a_token_is_told(schema):
    found = operations(schema)
    assert {} in found["get_board"][2]["security"]
    for name in ("post_assignments", "get_submissions", "get_reselections", "post_withdraw"):
        assert found[name][2]["security"] == [{"token": []}]
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_body_has_an_example(schema):
    bodies = {name: one[2]["requestBody"] for name, one in operations(schema).items() if one[1] == "post"}
    assert set(bodies) == set(BODIES)
    for name, body in bodies.items():
        assert body["content"]["application/json"]["example"] == BODIES[name]


def test_forms_say_what_is_refused(schema):
    forms = schema["components"]["schemas"]
    for name in (
        "Delivery",
        "AgentSaid",
        "Links",
        "AssignmentSaid",
        "ReasonSaid",
        "ReportSaid",
        "FreezeSaid",
    ):
        assert forms[f"{name}Request"]["additionalProperties"] is False, name
    assert "additionalProperties" not in forms["OutcomeSaidRequest"]  # they are kept beside it
    assert forms["DeliveryRequest"]["properties"]["outcomes"]["minItems"] == 1
    values = forms["PolicySaidRequest"]["properties"]["values"]
    assert (values["additionalProperties"], values["minProperties"]) == (False, 1)
    assert set(values["properties"]) == set(RULES)
    is_advanced = {name: "(advanced)" in one["description"] for name, one in values["properties"].items()}
    assert [name for name in RULES if not is_advanced[name]] == sorted(Policy.BASIC, key=[*RULES].index)
    agents = operations(schema)["get_compare"][2]["parameters"][0]
    assert agents["schema"] | {"minItems": 2, "maxItems": 5, "uniqueItems": True} == agents["schema"]


def test_nothing_comes_from_another_host(client, db):
    page = client.get("/api/docs/")
    script = client.get("/api/docs/?script=")
    assert (page.status_code, script.status_code) == (200, 200)
    assert script["Content-Type"].startswith("application/javascript")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.content.decode())
    assert len(loaded) >= 4
    for path in loaded:
        assert path.startswith("/")
        assert not path.startswith("//")
        answer = client.get(path.replace("&amp;", "&"))
        assert answer.status_code == 200, path
        answer.close()
    assert "<script>" not in page.content.decode()
    assert not re.search(r"https?://", script.content.decode())
    assert '"validatorUrl": null' in script.content.decode()


def test_styles_in_the_page_are_allowed_here_alone(client, db):
    def styles(path):
        policy = client.get(path)["Content-Security-Policy"]
        return next(part for part in policy.split("; ") if part.startswith("style-src"))

    assert styles("/api/docs/") == "style-src 'self' 'unsafe-inline'"
    for path in ("/api/schema/", "/", "/api/v1/"):
        assert styles(path) == "style-src 'self'"
    assert "script-src 'self'" in client.get("/api/docs/")["Content-Security-Policy"].split("; ")


# ------------------------------------------------------------------------------------------------ is it true

# Valid by the schema, and refused for what only the benchmark knows: its tasks, boards, and dates of today.
ACCEPTED = ["2xx", "3xx", 401, 403, 404, 409, 429]
STORED_DECIDES = {"post_submissions": [400, 422], "post_policy": [422], "post_reports": [422]}
FEW, MANY = 3, 150  # examples of each kind for each operation
STEADY = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
}


def shown(text):
    return name_rule(text.replace("\n", "").strip()) is None


schemathesis.openapi.format(
    "name", strategies.text(max_size=255).filter(lambda text: name_rule(text) is None)
)
schemathesis.openapi.format("words", strategies.text(max_size=255).filter(shown))


@pytest.fixture(scope="module")
def described(kept):
    """Every operation by its id, to be called in this process, on the connection of the test."""
    ends = (request_started, request_finished)
    for signal in ends:
        signal.disconnect(close_old_connections)
    config = SchemathesisConfig.from_dict(
        {
            "headers": {"Authorization": f"Bearer {kept.secrets[OPERATOR]}", "Accept-Encoding": "identity"},
            "operations": [
                {
                    "include-operation-id": name,
                    "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, *more]}},
                }
                for name, more in STORED_DECIDES.items()
            ],
        }
    )
    found = schemathesis.openapi.from_wsgi("/api/schema/", WSGIHandler(), config=config)
    yield {one.ok().definition.raw["operationId"]: one.ok() for one in found.get_all_operations()}
    for signal in ends:
        signal.connect(close_old_connections)


def send(kept, operation, mode, n_examples):
    """Send what the schema allows, or what it does not; half of it to places that are there."""
    name = ROUTE_OF[operation.definition.raw["operationId"]]
    ids = dict.fromkeys(("id", "uuid", "number"), str(kept.ids.get(name)))
    given_path = {"slug": "toy"} | ids

    @settings(max_examples=n_examples, **STEADY)
    @given(case=operation.as_strategy(generation_mode=mode), is_there=strategies.booleans())
    def run(case, is_there):
        if is_there and not is_negated(case, ParameterLocation.PATH):
            case.path_parameters = {key: given_path[key] for key in case.path_parameters or {}}
        answer = case.call()
        if answer.status_code >= 400 or not is_formed_after_all(case):
            case.validate_response(answer)

    run()


def is_formed_after_all(case):
    """Whether texts drawn without regard to their form have it by chance: no validator knows our forms."""
    texts = [one for one in case.body.values() if isinstance(one, str)] if isinstance(case.body, dict) else []
    is_of_form = "`format`" in f"{case.meta.phase.data.description}"
    return is_negated(case, ParameterLocation.BODY) and is_of_form and all(map(shown, texts))


def is_negated(case, location):
    found = case.meta.components.get(location)
    return found is not None and found.mode is GenerationMode.NEGATIVE


MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", sorted(ROUTE_OF))
def test_no_answer_is_undocumented(kept, described, name, mode):
    with suppress(Unsatisfiable):
        send(kept, described[name], mode, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", sorted(ROUTE_OF))
def test_no_answer_is_undocumented_at_length(kept, described, name, mode):
    with suppress(Unsatisfiable):
        send(kept, described[name], mode, MANY)
