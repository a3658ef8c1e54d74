"""A chart with what stands around it: its words and the table that holds the same rows."""

from dataclasses import dataclass

from django.utils.safestring import SafeString


@dataclass(frozen=True)
class Chart:
    """What a page shows as a figure, and /b/{slug}/plots/{name}.svg alone; `lede` says how to read it."""

    name: str
    title: str
    lede: str
    heads: tuple[str, ...]  # of the table twin, with a row for each mark
    rows: tuple[tuple[str, ...], ...]
    svg: SafeString
    narrow: SafeString | None = None  # for a phone, where that is another drawing
