"""Tables of text."""

from collections.abc import Sequence


def print_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> None:
    """Print a title, columns as wide as they need to be (the first to the left), and notes below."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    print(f"\n{title}")
    for row in (head, *rows):
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *others]).rstrip(), flush=True)
    for note in notes:
        print(f"  {note}")
