"""A chart with what stands around it: its words and the table that holds the same rows."""

from dataclasses import dataclass

from django.utils.safestring import SafeString


@dataclass(frozen=True)
class Chart:
    """What a page shows as a figure, and /b/{slug}/plots/{name}.svg alone.

    Attributes
    ----------
    name : str
        Its address.
    title : str
        What it shows, in a few words.
    lede : str
        How to read it, in a sentence or two.
    heads : tuple of str
        Of its table twin.
    rows : tuple of tuple of str
        What is drawn, in words and rounded numbers; a row for each mark.
    narrow : SafeString or None
        The same drawn for a phone, where that is another drawing.
    """

    name: str
    title: str
    lede: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    svg: SafeString
    narrow: SafeString | None = None
