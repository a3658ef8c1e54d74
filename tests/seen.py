"""What a reader sees of a page."""

import html
import re
from html.parser import HTMLParser


class Tables(HTMLParser):
    """The text of each row's cells, by the first class of the table; without its foot and its dividers."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.cell = {}, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        css = (dict(attributes).get("class") or "").split()
        if tag == "table":
            self.table = self.tables.setdefault(css[0] if css else "", [])
        elif tag == "tfoot":
            self.table = []  # read, and left
        elif tag == "tr":
            self.rows = [] if "divider" in css else self.table
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell.append(text)


def rows_of(response, name="ranking"):
    """The rows of a table without its head."""
    return Tables(response.content.decode()).tables[name][1:]


def text_of(response):
    main = re.search(r"<main.*</main>", response.content.decode(), re.S)[0]
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", main).split()))
