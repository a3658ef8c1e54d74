"""Boards; their forms are the core's own, told here by their names."""

from collections.abc import Mapping
from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
    SerializerMethodField,
)

from leaderboard.api.serializers.base import ReadSerializer


class BoardRowSerializer(ReadSerializer):
    number = IntegerField()
    published_at = DateTimeField()
    data_version = IntegerField()
    phase = CharField()
    target = CharField()
    n_tasks = IntegerField()
    n_complete = IntegerField()
    subset = IntegerField(source="subset.number", default=None, allow_null=True)
    policy = IntegerField(source="policy.number")
    digest = CharField()
    links = SerializerMethodField()

    def get_links(self, board: Any) -> dict[str, str]:
        slug = self.context["view"].benchmark.slug
        return {
            "self": self.link("board-numbered", slug, board.number),
            "entries": self.link("entries", slug, board.number),
        }


class BoardOneSerializer(ReadSerializer):
    """A board as the core tells it (`python -m selection standings --json`), and what publishing added."""

    benchmark = CharField()
    number = IntegerField()
    published_at = CharField()
    data_version = IntegerField()
    digest = CharField()
    signature = CharField(allow_null=True)
    key = CharField(allow_null=True)
    n_tasks = IntegerField()
    n_complete = IntegerField()
    phase = CharField()
    why = CharField()
    target = CharField(help_text="What `agents` is ordered by.")
    why_target = CharField()
    subset = JSONField(help_text="Or null.")
    conditions = DictField()
    verdict = JSONField(help_text="Whether the subset ranks like the whole; or null.")
    trials = JSONField(help_text="Or null.")
    targets = DictField(child=DictField())
    agents = ListField(child=DictField(), help_text="By rank; `at` has rank, interval and ties by target.")
    not_measured = ListField(
        child=CharField(),
        help_text="Sources of error without an estimate: in no interval, but for that of trials, of which "
        "intervals hold an upper bound.",
    )
    savings = JSONField(
        help_text="What a run on the subset spares, and under `so_far` what was spared: the tasks of a full "
        "evaluation that agents were not asked for and did not run. They were asked for the subset, or, in "
        "`n_chosen` of the runs, for tasks chosen for them, and ran all of these. Null under full runs."
    )
    coverage = JSONField(help_text="Or null.")
    notices = ListField(child=CharField())
    measured = ListField(child=CharField())
    trial_noise = CharField(
        required=False,
        help_text="The noise of trials that intervals borrow from another benchmark, or empty.",
    )
    since = JSONField(required=False, help_text="Where asked for: what changed since that board.")


class EntrySerializer(Serializer):
    """A line of a board, and where it stands."""

    position = IntegerField(help_text="From 0; `tied_with` tells ranges of these.")
    withdrawn = BooleanField(help_text="Whether all that it rests on was taken back since.")
    agent = CharField()
    at = DictField(child=DictField(), help_text="By target.")

    def to_representation(self, instance: Mapping[str, Any]) -> Any:
        return dict(instance)


class ComparedSerializer(ReadSerializer):
    board = IntegerField(allow_null=True, help_text="The latest.")
    data_version = IntegerField(help_text="What was compared; that of the board may be an earlier one.")
    target = CharField()
    n_tasks = IntegerField()
    omega = FloatField(allow_null=True)
    trial_noise = CharField(help_text="The noise of trials that intervals borrow, or empty.")
    agents = DictField(child=DictField(), help_text="By descending score.")
    pairs = ListField(child=DictField(), help_text="`difference` is that of a − b, with its own interval.")
    left_out = DictField(child=CharField(), help_text="Agents that cannot be compared, and why.")
