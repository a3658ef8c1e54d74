"""What all forms of answers share."""

from typing import Any

from django.urls import reverse
from rest_framework.serializers import CharField, DictField, IntegerField, Serializer, URLField


class ReadSerializer(Serializer):
    """What is only ever read."""

    def link(self, name: str, *args: Any) -> str:
        return str(self.context["request"].build_absolute_uri(reverse(f"api:{name}", args=args)))


def page_of(row: type[Serializer]) -> type[Serializer]:
    """The form of a page of rows."""
    fields: dict[str, Any] = {
        "count": IntegerField(help_text="Rows on all pages."),
        "next": URLField(allow_null=True),
        "previous": URLField(allow_null=True),
        "results": row(many=True),
    }
    return type(f"{row.__name__.removesuffix('Serializer')}Page", (Serializer,), fields)


class IndexSerializer(ReadSerializer):
    version = CharField()
    links = DictField(child=CharField(), help_text="Where to go on; {…} is to be filled in.")
