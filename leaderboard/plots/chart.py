"""A chart with what stands around it: its words and the table that holds the same rows."""

from dataclasses import dataclass

from django.utils.safestring import SafeString


@dataclass(frozen=True)
class Chart:
    """What a page shows as a figure, and /b/{slug}/plots/{name}.svg alone.

    name: its address.
    title: what it shows, in a few words.
    lede: how to read it, in a sentence or two.
    heads: of its table twin.
    rows: what is drawn, in words and rounded numbers; a row for each mark.
    narrow: the same drawn for a phone, where that is another drawing.
    """

    name: str
    title: str
    lede: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    svg: SafeString
    narrow: SafeString | None = None
