"""A badge: two words in two boxes, as wide as their characters are many."""

from unicodedata import east_asian_width

from django.utils.html import format_html
from django.utils.safestring import SafeString

HEIGHT, BESIDE = 20, 8
NARROW, WIDE = 6.6, 11.5  # of a character at 11 px; no font is measured, and `textLength` settles the rest
LABEL, VALUE = "#1c2226", "#0b5563"  # ink and lead of the pages; white on them has 16 and 8 to 1


def badge(*, label: str, value: str, title: str) -> SafeString:
    """`title` is read out in its place, and shown when it is pointed at."""
    left, right = width_of(label), width_of(value)
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{height}" role="img" '
        'aria-labelledby="badge-title" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'fill="#fff" text-anchor="middle"><title id="badge-title">{title}</title>'
        '<rect width="{left}" height="{height}" fill="{ink}"/>'
        '<rect x="{left}" width="{right}" height="{height}" fill="{lead}"/>{words}</svg>',
        whole=f"{left + right:g}",
        height=HEIGHT,
        title=title,
        left=f"{left:g}",
        right=f"{right:g}",
        ink=LABEL,
        lead=VALUE,
        words=_text_in(label, 0, left) + _text_in(value, left, right),
    )


def width_of(text: str) -> float:
    """Of the box around a text."""
    n_wide = sum(east_asian_width(sign) in "WF" for sign in text)
    return round(n_wide * WIDE + (len(text) - n_wide) * NARROW + 2 * BESIDE, 1)


def _text_in(text: str, start: float, width: float) -> SafeString:
    return format_html(
        '<text x="{}" y="14" textLength="{}" lengthAdjust="spacingAndGlyphs">{}</text>',
        f"{start + width / 2:g}",
        f"{max(width - 2 * BESIDE, 1):g}",
        text,
    )
