"""Machine checks: what a delivery lacks, what is odd in it, what it should not hold.

They are shown with the submission, and none of them refuses it. A result is stored as it is told: the name of
the check, its level and a sentence; what is noted is for the operator, what is warned for the submitter too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.accounts.secrets import MalformedTokenError, parse
from leaderboard.catalog.models import Duplicates, MissingPlaces
from leaderboard.operations import asking
from leaderboard.operations.delivered import DeliveredRows, stored_delivery
from leaderboard.operations.models import Assignment
from leaderboard.operations.queries import has_been_shown
from leaderboard.studies.answers import words
from leaderboard.studies.queries import loaded_is_pass_fail
from leaderboard.studies.receipt import flags
from leaderboard.submissions.models import MachineCheck, Submission
from leaderboard.submissions.queries import texts_of

PASSED, NOTED, WARNED = "passed", "noted", "warned"
N_NAMED = 10
UNAUDITED = (
    "it came without an assignment, so no task from outside the subset checks whether "
    "the agent ranks there like the rest"
)

Texts = Iterable[tuple[str, pa.Array]]
Result = dict[str, str]


def check(submission: Submission) -> list[Result]:
    return check_rows(stored_delivery(submission), texts_of(submission.pk))


def check_rows(delivered: DeliveredRows, texts: Texts) -> list[Result]:
    """Check a delivery; `texts` are its metadata by column."""
    of, submission = delivered, delivered.submission
    lacks = asking.absent(of.n_counted, of.names_asked, of.policy, unranked=of.unranks)
    found = [*_results("coverage", lacks, f"all {len(of.names_asked):,} tasks asked for have an outcome")]
    if n := asking.n_outside(of.rows, of.asked_by_now):
        outside = f"{words.counted(n, 'outcome')} on tasks that were not asked for"
        found += _results("coverage", [outside], level=NOTED)
    found += _trials(of)
    if not of.assignment and submission.asked is not None and of.policy.audit_share:
        everything, there = of.names(None).keys(), of.n_counted["task"].to_pylist()
        is_assigned = Assignment.objects.filter(submissions__in=list(of.submissions)).exists()
        if not (is_assigned or everything <= set(submission.asked) or everything <= set(there)):
            found += _results("audit", [UNAUDITED], level=NOTED)
    found += [*_flags(of), *_fractions(of)]
    links = [(f"links.{name}", pa.array([link])) for name, link in submission.links.items()]
    revoke = "it would be published; withdraw the submission and revoke it"
    secrets = [f"{one}; {revoke}" for one in secrets_in([*texts, *links])]
    found += _results("secrets", secrets, "nothing looks like a token or a key")
    noted, dated = [], f"dated {submission.submitted_at:%Y-%m-%d}" if submission.submitted_at else "not dated"
    if submission.backdated:
        noted.append(f"{dated}, more than {of.policy.backdating_days} days before it came: marked backdated")
    if submission.imprecise:
        noted.append("only the month or year of submitted_at is known")
    return [*found, *_results("dates", noted, dated, level=NOTED)]


def keep(submission: Submission, results: list[Result], *, as_of: datetime) -> None:
    MachineCheck.objects.create(submission=submission, found=results, at=as_of)


def warnings(results: Iterable[Result]) -> list[str]:
    return [one["told"] for one in results if one["level"] == WARNED]


def _results(
    name: str, sentences: Iterable[str], otherwise: str = "", *, level: str = WARNED
) -> Iterator[Result]:
    texts = list(sentences)
    yield from ({"name": name, "level": level, "told": one} for one in texts)
    if otherwise and not texts:
        yield {"name": name, "level": PASSED, "told": otherwise}


def _trials(of: DeliveredRows) -> Iterator[Result]:
    """Trials that count for nothing: on what ranks the agent, and on the rest where all of it is there."""
    uneven = [one for block in of.blocks for one in asking.uneven(of.n_counted, block, of.policy)]
    uneven += asking.uneven(of.n_counted, of.rest, of.policy, what="the other tasks")
    fewest, too_few = min(asking.trials(of.n_counted, of.names_asked).values(), default=0), []
    n_asked = of.assignment.n_trials if of.assignment else of.policy.n_trials
    if 0 < fewest < n_asked:
        there = "is 1" if fewest == 1 else f"are {fewest:,}"
        zero = of.policy.missing == MissingPlaces.ZERO
        meanwhile = "missing results count as failures" if zero else "the agent is not ranked"
        too_few.append(
            f"{n_asked:,} trials of each task were asked for; there {there} so far: "
            f"{asking.until_all(of.policy)}, {meanwhile}"
        )
    yield from _results("trials", [*uneven, *_beyond(of), *too_few], f"{fewest:,} of each task")
    if n := of.submission.n_invalid:
        yield from _results("trials", [words.counted(n, "invalid outcome")], level=NOTED)


def _beyond(of: DeliveredRows) -> Iterator[str]:
    """Trials beyond those that count; a run after a board has shown the agent is named with that."""
    if not (of.is_capped or of.is_first) and has_been_shown(of.submission.agent):
        return
    whole = "a whole run counts with its mean, others with their lowest results"
    if of.policy.duplicates == Duplicates.MEAN:
        whole = f"earlier submissions first; {whole}"
    why = "no more were asked for" if of.is_capped else whole
    for part in of.blocks[:1] if of.is_capped else [*of.blocks, of.rest]:
        there = asking.trials(of.n_counted, part)
        fewest, most = min(there.values(), default=0), of.most_trials(part)
        if most and fewest > most and part.keys() <= {task for task, _ in there}:
            tasks = "of the other tasks" if part is of.rest else "task asked for"
            tasks += (
                f" ({words.first_names(list(part.values()), asking.N_NAMED)})"
                if part in of.blocks[1:]
                else ""
            )
            yield f"there are {fewest:,} trials of each {tasks}, and the score takes {most:,}: {why}"


def _flags(of: DeliveredRows) -> Iterator[Result]:
    last = pc.max(of.before["submission"]).as_py()
    earlier = of.replaced
    if not earlier.num_rows:
        earlier = of.before.filter(pc.equal(of.before["submission"], -1 if last is None else last))
    copies, gains, identical = flags(of.outcomes, earlier, of.of_agent, of.row)
    others = ", ".join(identical[:N_NAMED])
    alike = [f"the same outcome as {others} on every task"] if identical else []
    repeats = "its trials neither repeat each other nor only improve"
    yield from _results("copies", filter(None, [copies]), repeats)
    is_first = not earlier.num_rows
    otherwise = "it is the first delivery" if is_first else "it is not only better than the one before"
    yield from _results("gains", filter(None, [gains]), otherwise, level=NOTED)
    yield from _results("identical", alike, "no other agent on the latest board has the same outcomes")


def _fractions(of: DeliveredRows) -> Iterator[Result]:
    value = of.rows["value"].to_numpy()
    n_graded = int(np.count_nonzero((value > 0) & (value < 1)))
    odd = bool(n_graded) and loaded_is_pass_fail(of.policy.benchmark)
    lie = "lies" if n_graded == 1 else "lie"
    sentence = (
        f"{words.counted(n_graded, 'outcome')} {lie} between 0 and 1; all that an operator loaded here are 0 "
        "or 1: the board flags the agent for the operator (a mean of several runs says so by n_averaged)"
    )
    yield from _results("fractions", [sentence] * odd, "outcomes are of the kind that this benchmark has")


# Whatever is stored is published one day, so that a secret in it has to be revoked. Patterns are those that
# the services document for scanners; our own tokens carry a checksum, so that nothing else is taken for one.
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
            for kind, pattern in COMPILED.items():
                matches = pattern.finditer(text)
                counts[column, kind] += any(kind != OURS or _is_ours(one.group()) for one in matches)
    return [
        f"{column} seems to hold a secret ({kind}), in {n:,} {'text' if n == 1 else 'texts'}"
        for (column, kind), n in sorted((+counts).items())
    ]


def _is_ours(text: str) -> bool:
    try:
        parse(text)
    except MalformedTokenError:
        return False
    return True
