"""Whole addresses, for what is read elsewhere."""

from typing import Any

from django import template
from django.urls import reverse

from leaderboard.pages.addresses import absolute

register = template.Library()


@register.simple_tag(takes_context=True)
def whole_address(context: dict[str, Any], name: str, *of: Any) -> str:
    return absolute(context["request"], reverse(name, args=of))
