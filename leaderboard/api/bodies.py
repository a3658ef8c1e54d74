"""What may be said in a body: each form checked whole, every fault told at once, as a submission's is."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from leaderboard.catalog.models import Weights
from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.envelope import LINKS, fault
from leaderboard.submissions.parsing.flat import Fault, excerpt, name_rule

MAX_TEXT = 5_000  # characters
FAULTY = "The body has faults. Nothing was stored."
ABSENT: dict[str, Any] = {"required": "is required", "null": "is required"}


def no_controls(text: str) -> None:
    if any(not (sign.isprintable() or sign in "\n\t") for sign in text):
        raise serializers.ValidationError("has signs that cannot be seen")


def keeps_names(text: str) -> None:
    if rule := name_rule(text):
        raise serializers.ValidationError(rule)


class Words(serializers.CharField):
    """Text of a person, some signs long."""

    format = "words"
    default_error_messages = ABSENT | {
        "blank": "is empty",
        "invalid": "must be text",
        "max_length": "has more than {max_length:,} characters",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_TEXT, "validators": [no_controls], **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class Name(Words):
    format = "name"
    default_error_messages: ClassVar = {"invalid": "a name is text"}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=255, trim_whitespace=False, validators=[keeps_names], **options)


class Reason(Words):
    def __init__(self) -> None:
        super().__init__(help_text="Why: it is kept for good.")


class Truth(serializers.BooleanField):
    default_error_messages = ABSENT | {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class BodySerializer(serializers.Serializer):
    """A body; a field that is none is a fault."""

    default_error_messages = ABSENT | {"invalid": "must be an object"}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (strange := sorted(map(str, set(data) - set(self.fields)))):
            known = ", ".join(self.fields)
            rule = f"unknown field; known: {known}"
            raise serializers.ValidationError({excerpt(name): [rule] for name in strange[:100]})
        return super().to_internal_value(data)

    @classmethod
    def read(cls, body: Any) -> dict[str, Any]:
        """Return what was said, or raise Faulty."""
        if not isinstance(body, Mapping):
            raise Faulty(FAULTY, faults=(fault("body", body, "must be a JSON object"),))
        form = cls(data=body)
        if not form.is_valid():
            raise Faulty(FAULTY, faults=tuple(_faults(form.errors, body)))
        return dict(form.validated_data)


def _faults(errors: Mapping[str, Any], body: Any, before: str = "") -> Iterator[Fault]:
    for name, found in errors.items():
        if name == "non_field_errors":
            field, value = before.rstrip("."), body
        else:
            field, value = f"{before}{name}", body.get(name)
        if isinstance(found, Mapping):
            yield from _faults(found, value, f"{field}.")
        else:
            for rule in found:
                # A rule may show the value, lone surrogates too.
                yield fault(field, value, str(rule).encode("utf-8", "backslashreplace").decode())


@extend_schema_serializer(component_name="AgentSaid")
class AgentBody(BodySerializer):
    default_error_messages: ClassVar = {"invalid": "must be an object with name, scaffold and model"}

    name = Name(help_text="Its own on this benchmark.")
    scaffold = Name()
    model = Name()
    version = Name(required=False, allow_blank=True, default="")
    organisation = Name(required=False, allow_blank=True, default="")
    weights = serializers.ChoiceField(
        Weights.values,
        required=False,
        allow_blank=True,
        default="",
        help_text="Of its model.",
        error_messages=ABSENT | {"invalid_choice": "must be open or closed"},
    )


class Links(BodySerializer):
    def get_fields(self) -> dict[str, serializers.Field]:
        return {name: serializers.URLField(required=False) for name in LINKS}


@extend_schema_serializer(component_name="OutcomeSaid")
class OutcomeBody(serializers.Serializer):
    """One trial on one task; fields that are not known here are kept beside it."""

    task = serializers.CharField()
    trial = serializers.IntegerField(min_value=0, max_value=32_767)
    outcome = serializers.FloatField(min_value=0, max_value=1, required=False, allow_null=True)
    valid = Truth(required=False)


@extend_schema_serializer(component_name="Delivery")
class DeliveryBody(BodySerializer):
    """Told for the schema alone: `submissions.parsing.files` reads it."""

    agent = AgentBody()
    submitted_at = serializers.DateTimeField(required=False)
    run = Name(required=False)
    assignment = serializers.UUIDField(required=False)
    replaces = serializers.UUIDField(required=False)
    embargo_until = serializers.DateTimeField(required=False)
    links = Links(required=False)
    outcomes = OutcomeBody(many=True, allow_empty=False)


@extend_schema_serializer(component_name="AssignmentSaid")
class AssignmentBody(BodySerializer):
    agent = AgentBody()


@extend_schema_serializer(component_name="ReasonSaid")
class ReasonBody(BodySerializer):
    reason = Reason()


@extend_schema_serializer(component_name="ApprovalSaid")
class ApprovalBody(BodySerializer):
    variant = serializers.ChoiceField(
        ["plain", "hysteresis"],
        help_text="Which of the proposed subsets.",
        error_messages=ABSENT | {"invalid_choice": "must be plain or hysteresis"},
    )
    reason = Reason()


@extend_schema_serializer(component_name="FreezeSaid")
class FreezeBody(BodySerializer):
    frozen = Truth()
    reason = Reason()


@extend_schema_serializer(component_name="PolicySaid")
class PolicyBody(BodySerializer):
    values = serializers.DictField(
        help_text="Fields of the policy to set; the others stay.",
        allow_empty=False,
        error_messages=ABSENT
        | dict.fromkeys(("not_a_dict", "empty"), "must be an object with fields of the policy to set"),
    )
    reason = Reason()


@extend_schema_serializer(component_name="ReportSaid")
class ReportBody(BodySerializer):
    text = Words(help_text="What is wrong with the entry.")
    board = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        allow_null=True,
        help_text="Number of the board.",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value", "max_string_length"), "must be the number of a board"
        ),
    )
    contact = serializers.EmailField(
        required=False,
        allow_blank=True,
        help_text="Where one may ask back.",
        error_messages={"invalid": "must be an e-mail address", "null": "must be an e-mail address"},
    )
