"""Secrets that came along with outcomes: tokens of well-known services, and our own.

Whatever is stored is published one day, so that a secret in it has to be revoked. Patterns are those that the
services document for scanners; our own tokens carry a checksum, so that nothing else is taken for one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.accounts.secrets import MalformedTokenError, parse

OURS = "token of this service"
PATTERNS = {
    OURS: r"\bbst_[0-9A-Za-z]{49}\b",
    "private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "key of Anthropic": r"\bsk-ant-[0-9A-Za-z_-]{20,}",
    "key of OpenAI": r"\bsk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z]{20,}",
    "access key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "token of GitHub": r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{22,})",
    "token of GitLab": r"\bglpat-[0-9A-Za-z_-]{20}",
    "key of Google": r"\bAIza[0-9A-Za-z_-]{35}",
    "token of Hugging Face": r"\bhf_[0-9A-Za-z]{30,}",
    "token of npm": r"\bnpm_[0-9A-Za-z]{36}\b",
    "token of PyPI": r"\bpypi-[0-9A-Za-z_-]{50,}",
    "token of Slack": r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}",
    "key of Stripe": r"\b[rs]k_live_[0-9A-Za-z]{20,}",
    "signed web token": r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}",
}
ANY = "|".join(f"(?:{pattern})" for pattern in PATTERNS.values())
COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def secrets_in(texts: Iterable[tuple[str, pa.Array]]) -> list[str]:
    """Say which kinds of secrets a column seems to hold, in how many different texts; never the secret."""
    counts = Counter[tuple[str, str]]()
    for column, values in texts:
        suspect = values.filter(pc.fill_null(pc.match_substring_regex(values, ANY), False))
        for text in pc.unique(suspect).to_pylist():
            counts.update((column, kind) for kind in _kinds(text))
    return [
        f"{column} seems to hold a secret ({kind}), in {n:,} {'text' if n == 1 else 'texts'}"
        for (column, kind), n in sorted(counts.items())
    ]


def _kinds(text: str) -> Iterator[str]:
    for kind, pattern in COMPILED.items():
        matches = pattern.finditer(text)
        if any(kind != OURS or _is_ours(match.group()) for match in matches):
            yield kind


def _is_ours(text: str) -> bool:
    try:
        parse(text)
    except MalformedTokenError:
        return False
    return True
