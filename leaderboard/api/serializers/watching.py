"""What is watched and decided, and the rules."""

from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    SerializerMethodField,
)

from leaderboard.api.serializers.base import ReadSerializer


class AlertRowSerializer(ReadSerializer):
    id = IntegerField()
    monitor = CharField()
    level = CharField()
    subset = IntegerField(source="subset.number")
    evidence = JSONField()
    request = IntegerField(source="request_id", allow_null=True, help_text="The rerun request it waits for.")
    opened_at = DateTimeField()
    closed_at = DateTimeField(allow_null=True)
    closed_reason = CharField()


class AskedAgentSerializer(ReadSerializer):
    agent = CharField()
    sampled = BooleanField(help_text="Drawn at random.")
    inclusion = FloatField(help_text="Probability of being drawn.")
    why = CharField()
    n_lacking = IntegerField()
    arrived_at = DateTimeField(allow_null=True)


class RerunRowSerializer(ReadSerializer):
    id = IntegerField()
    kind = CharField()
    status = CharField()
    subset = IntegerField(
        source="subset.number", default=None, allow_null=True, help_text="Null: a recall is of no subset."
    )
    reason = CharField()
    n_tasks = IntegerField()
    agents = AskedAgentSerializer(many=True, source="agents.all")
    opened_at = DateTimeField()
    deadline = DateTimeField()
    closed_at = DateTimeField(allow_null=True)
    closed_reason = CharField()


class ReselectionRowSerializer(ReadSerializer):
    id = IntegerField()
    status = CharField()
    previous = IntegerField(source="previous.number", help_text="The subset in use then.")
    subset = IntegerField(source="subset.number", default=None, allow_null=True, help_text="Activated by it.")
    variant = CharField(help_text="That was approved.")
    data_version = IntegerField()
    reason = CharField()
    proposed_at = DateTimeField()
    decided_at = DateTimeField(allow_null=True)
    decided_reason = CharField()
    links = SerializerMethodField()

    def get_links(self, reselection: Any) -> dict[str, str]:
        slug = self.context["view"].benchmark.slug
        names = {"self": "reselection", "approve": "approve", "reject": "reject"}
        return {label: self.link(name, slug, reselection.pk) for label, name in names.items()}


class ReselectionOneSerializer(ReselectionRowSerializer):
    content = JSONField(help_text="Variants with tasks that enter and leave, figures, cost and ranks after.")
    obstacle = CharField(help_text="Why it cannot be approved any more; empty where it can.")


class PolicyOneSerializer(ReadSerializer):
    number = IntegerField()
    created_at = DateTimeField()
    values = DictField(help_text="Every field.")
    rules = DictField(child=CharField(), help_text="What each field may say.")


class FreezeSerializer(ReadSerializer):
    frozen = BooleanField()
    since = DateTimeField(allow_null=True)
    reason = CharField()
