"""Whether staged assignment holds on a benchmark, in one word and a sentence, by a replay.

============  ======  =======  ===========
figure        yes     mostly   unit
============  ======  =======  ===========
pairs         .95     .92      share
its lower end .93     .90      share, one-sided 95%
clear pairs   .99     .97      share
best five     .95     .80      share
regret        .5      1.5      points, at most
coverage      .90     –        share
its upper end .95     .90      share, one-sided 95%, Wilson
bias          1       –        points, or 2 SE, and never over 2
============  ======  =======  ===========

Below both: *not yet*. Where under 5% of the runs are saved: *full runs*. With under 20 agents, 5 that came
among the first P, or 19 estimates: *mostly* at most.
"""

from dataclasses import dataclass
from typing import NamedTuple

from analytics import DECIMALS
from analytics.text import counted
from analytics.wilson import wilson
from selection.staged.replay import TOP, StagedReplay

ONE_SIDED = 1.6448536269514722
N_AGENTS, N_PODIUM, N_PUBLISHED = 20, 5, 19
MIN_SAVED = 0.05
MAX_BIAS, LARGEST_BIAS = 0.01, 0.02
NUMBERS = ("none", "one", "two", "three", "four", "five")


class Bounds(NamedTuple):
    """What a word needs."""

    pairs: float
    pairs_lower: float
    clear_pairs: float
    best_five: float
    regret: float
    coverage: float
    coverage_upper: float
    bias: float


WORDS = {
    "yes": Bounds(0.95, 0.93, 0.99, 0.95, 0.005, 0.90, 0.95, LARGEST_BIAS),
    "mostly": Bounds(0.92, 0.90, 0.97, 0.80, 0.015, 0.0, 0.90, float("inf")),
}


@dataclass(frozen=True)
class StagedVerdict:
    """A word, what keeps it from a better one, and the sentence.

    word: {"yes", "mostly", "mostly (few)", "not yet", "full runs"}.
    reasons: figures that fall short of yes.
    """

    word: str
    reasons: tuple[str, ...]
    text: str


def verdict(replay: StagedReplay) -> StagedVerdict:
    """Judge a replay."""
    reasons = tuple(_short(replay, WORDS["yes"], strict=True))
    word = next(
        (name for name, of in WORDS.items() if not _short(replay, of, strict=name == "yes")), "not yet"
    )
    counts = (
        (replay.n_agents, N_AGENTS, "agent", ""),
        (replay.n_podium, N_PODIUM, "agent", " that came among the first"),
        (replay.n_published, N_PUBLISHED, "estimate", ""),
    )
    few = tuple(
        f"{f'only {counted(n, noun)}' if n else f'no {noun}'}{which}; {least} are needed"
        for n, least, noun, which in counts
        if n < least
    )
    if round(replay.saved - MIN_SAVED, DECIMALS) < 0:
        word, reasons = "full runs", (f"it saves {replay.saved:.1%} of the runs",)
    elif word != "not yet" and few:
        word, reasons = "mostly (few)", (*reasons, *few)
    more = f" A firmer verdict is not possible: {'; '.join(reasons)}." if word == "mostly (few)" else ""
    return StagedVerdict(word, reasons, f"{word.capitalize()}. {sentence(replay)}{more}")


def sentence(replay: StagedReplay) -> str:
    """Say what the service would have saved, and what it would have got right."""
    mean = " on average" if replay.n_seeds > 1 else ""
    missed = f"missed the best agent by {100 * replay.regret:.1f} points{mean}"
    leader = "found the best agent and" if replay.regret < 5e-10 else f"{missed}, but found"
    five = replay.best_five * TOP
    many = NUMBERS[round(five)] if abs(five - round(five)) < 1e-9 else f"{five:.1f}"
    pairs = ""
    if replay.pairs is not None:
        pairs = (
            f", and ordered {replay.pairs.value:.1%} of pairs as full runs do (random tasks at the same "
            f"cost: {replay.random_pairs:.1%})"
        )
    low, high = (f"{100 * share:.0f}" for share in replay.ranges["saved"])
    spread = "" if low == high else f" ({low} to {high}% in {replay.n_seeds} replays)"
    return (
        f"On this benchmark’s own history the service would have saved {replay.saved:.0%} of all runs"
        f"{spread}; it {leader} {many} of the best five{pairs}."
    )


def _short(replay: StagedReplay, of: Bounds, *, strict: bool) -> list[str]:
    pairs, coverage = replay.pairs, replay.coverage
    low = [
        _below("pairs", pairs.value if pairs else None, of.pairs),
        _below(
            "the lower end of pairs",
            pairs.value - ONE_SIDED * pairs.se if pairs and pairs.se is not None else None,
            of.pairs_lower,
        ),
        _below("clear pairs", replay.clear_pairs.value if replay.clear_pairs else None, of.clear_pairs),
        _below("the best five", replay.best_five, of.best_five),
        _below("coverage", coverage.value if coverage else None, of.coverage),
        _below(
            "the upper end of coverage",
            wilson(coverage.value, coverage.n, 0.95)[1] if coverage else None,
            of.coverage_upper,
        ),
    ]
    if round(replay.regret - of.regret, DECIMALS) > 0:
        low.append(f"regret is {100 * replay.regret:.1f} points, over {100 * of.regret:g}")
    if strict and replay.bias is not None:
        most = min(max(MAX_BIAS, 2.0 * (replay.bias.se or 0.0)), LARGEST_BIAS)
        if round(abs(replay.bias.value) - most, DECIMALS) > 0:
            low.append(
                f"estimates are {100 * replay.bias.value:+.1f} points off on average, over {100 * most:.1f}"
            )
    return [one for one in low if one]


def _below(name: str, value: float | None, least: float) -> str:
    if value is None or round(value - least, DECIMALS) >= 0:
        return ""
    return f"{name}: {value:.1%}, under {least:.0%}"
