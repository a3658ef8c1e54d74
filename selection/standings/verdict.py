"""Whether a board may be trusted: one word from a fixed rule, and a sentence.

The theory is in ``selection/README.md``, “Nested validation”.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from analytics import DECIMALS
from selection.schema.board import Better, Verdict
from selection.standings import terms, words
from selection.validation_text import TESTS, error

REPLAY, TOO_FEW = "replay", "too few"
PROTOCOLS = ("temporal", "loao")
RULE = (("yes", 0.95, 0.99), ("mostly", 0.90, 0.95))
NEW_AGENTS = {
    "temporal": "For {n} that came after the tasks were chosen",
    "loao": "For {n}, each left out of the choice of tasks",
}
CHOSEN = {
    "": "",
    "prequential": "Each agent was tested with the strategy that was best until then.",
    "selected on the same data": "If the strategy was chosen on the same data, the share is too high.",
}
DEFAULT = "mid_range"
N_ERRORS = 2.0
N_FEWEST = 10  # held-out agents, as a standard error takes

Plain = Mapping[str, Any]


def verdict(validation: Plain | None, strategy: str) -> Verdict | None:
    """Return the verdict: of a replay where the validation has one; None where there is none.

    validation: `selection.validation.as_json`.
    """
    if replay := (validation or {}).get("replay"):
        figures, of_replay = replay["figures"], replay["verdict"]
        if of_replay is None:
            return Verdict(word=TOO_FEW, sentence=f"Not known yet: {replay['reason']}.", strategy=strategy)
        pairs, clear = figures["pairs"] or {}, figures["clear_pairs"] or {}
        return Verdict(
            word=of_replay["word"],
            sentence=of_replay["text"],
            pairs=pairs.get("value"),
            clear=clear.get("value"),
            pairs_se=pairs.get("se"),
            protocol=REPLAY,
            strategy=strategy,
            n=figures["n_agents"],
        )
    n_held_out = {
        protocol: figures[strategy]["n"]
        for protocol in PROTOCOLS
        if (figures := strategies_of(validation, protocol)).get(strategy, {}).get("pairs_correct_full")
        is not None
    }
    enough = [protocol for protocol, n in n_held_out.items() if n >= N_FEWEST]
    protocol = next(iter(enough or list(n_held_out)[::-1]), None)
    if protocol is None:
        return None
    figures, chosen = strategies_of(validation, protocol)[strategy], ""
    if strategy != DEFAULT:
        before = (validation or {})["protocols"][protocol].get("prequential")
        chosen = "selected on the same data"
        if before and before["pairs_correct_full"] is not None:
            figures, chosen = before, "prequential"
    errors = figures["se"] or {}
    judged = Verdict(
        word=word(figures["pairs_correct_full"], figures["pairs_clear_full"]),
        sentence="",
        pairs=figures["pairs_correct_full"],
        clear=figures["pairs_clear_full"],
        random_difference=figures["random_difference"],
        se=errors.get("random_difference"),
        pairs_se=errors.get("pairs_correct_full"),
        protocol=protocol,
        strategy=strategy,
        chosen=chosen,
        n=figures["n"],
        better=better(validation, protocol, strategy),
    )
    question = f"Do the ranking tasks rank like all tasks? {words.sentence(judged.word)}"
    return replace(judged, sentence=f"{question} {why_text(judged)}")


def no_subset(reason: str) -> Verdict:
    """Return the verdict on a board without a subset, and why there is none."""
    sentence = f"No ranking tasks are in use: {terms.clause(reason)}."
    return Verdict(word="no subset", sentence=sentence, reason=reason)


def word(correct: float, clear: float | None) -> str:
    """Return yes, mostly or not yet."""
    for answer, least, least_clear in RULE:
        # equal is what agrees to 1e-9
        if round(correct - least, DECIMALS) >= 0 and (
            clear is None or round(clear - least_clear, DECIMALS) >= 0
        ):
            return answer
    return "not yet"


def better(validation: Plain | None, protocol: str, strategy: str) -> Better | None:
    """Return the strategy that is better than the one in use by most; None where there is none.

    A validation takes differences to the strategy of its policy, so that there are none for another.
    """
    if (validation or {}).get("strategy") != strategy:
        return None
    worse_under = [
        name
        for other in (validation or {}).get("protocols", {})
        for name, value, se in _differences(validation, other)
        if value < 0 and is_clear(value, se)
    ]
    candidates = [
        Better(name, value, se)
        for name, value, se in _differences(validation, protocol)
        if value > 0 and is_clear(value, se) and name not in worse_under
    ]
    return max(candidates, key=lambda one: one.difference, default=None)


def shortfall_text(validation: Plain | None, strategy: str) -> str:
    """Say that pairs_correct_full falls short of pairs_correct, and by how much; empty where it does not.

    It does where it is smaller by more than two standard errors with each agent left out.
    """
    own = strategies_of(validation, "loao").get(strategy, {})
    difference, se = own.get("full_difference"), (own.get("se") or {}).get("full_difference")
    if difference is None or se is None or difference >= 0 or not is_clear(difference, se):
        return ""
    of_full, of_subset = (words.percent(own[name]) for name in ("pairs_correct_full", "pairs_correct"))
    return (
        f"the estimated full score orders {of_full}% of pairs correctly, the mean on the ranking tasks "
        f"{of_subset}% (one agent left out at a time; SE of the difference {words.percent(se)} points)"
    )


def is_clear(difference: float, se: float) -> bool:
    """Whether a difference is larger than two standard errors, by more than 1e-9."""
    return round(abs(difference) - N_ERRORS * se, DECIMALS) > 0


def strategies_of(validation: Plain | None, protocol: str) -> Plain:
    """Return the figures of a protocol by strategy; empty where it is not available."""
    of_protocol = (validation or {}).get("protocols", {}).get(protocol, {})
    strategies: Plain = of_protocol.get("strategies", {}) if of_protocol.get("available") else {}
    return strategies


def advice_text(judged: Verdict | None, command: str) -> str:
    """Tell the operator which strategy does better and how to change to it; empty where none does.

    command: what is typed, with ``{strategy}`` in the place of its name.
    """
    if judged is None or judged.better is None:
        return ""
    best, percent = judged.better, words.percent
    return (
        f"The strategy {best.strategy} orders {percent(best.difference)} points (SE {percent(best.se)}) more "
        f"pairs correctly than {judged.strategy}. To use it: {command.format(strategy=best.strategy)}"
    )


def _differences(validation: Plain | None, protocol: str) -> Iterator[tuple[str, float, float]]:
    for name, figures in strategies_of(validation, protocol).items():
        value, se = figures.get("policy_difference"), (figures.get("se") or {}).get("policy_difference")
        if value is not None and se is not None:
            yield name, value, se


def why_text(judged: Verdict) -> str:
    """Say what the word rests on."""
    pairs, clear = words.percent(judged.pairs or 0.0), judged.clear
    also = f" ({words.percent(clear)}% of clearly different pairs)" if clear is not None else ""
    new = NEW_AGENTS[judged.protocol].format(n=words.counted(judged.n, "agent"))
    parts = (
        f"{new}: {pairs}% of pairs are ordered as a full run would order them{also}.",
        _against_random(judged),
        CHOSEN[judged.chosen],
    )
    return " ".join(part for part in parts if part)


def random_text(validation: Plain | None, strategy: str) -> str:
    """Say under how many protocols a random subset does as well, better or worse; empty where untold.

    Better and worse are differences of more than two standard errors; of random splits their spread counts.
    """
    by_result: dict[str, list[str]] = {"as well": [], "better": [], "worse": []}
    for protocol in TESTS:
        own = strategies_of(validation, protocol).get(strategy, {})
        difference, se = own.get("random_difference"), error(own, "random_difference")
        if difference is not None and se is not None:
            how = "worse" if difference > 0 else "better"
            by_result[how if is_clear(difference, se) else "as well"].append(protocol)
    n = sum(map(len, by_result.values()))
    if not n:
        return ""
    if len(by_result["as well"]) == n:
        tests = "the one test" if n == 1 else f"all {n} tests"
        errors = "deviations over its splits" if by_result["as well"] == ["random_80_20"] else "errors"
        return (
            f"A random subset of the same size does as well in {tests}: no difference exceeds two standard "
            f"{errors}."
        )
    parts: list[str] = []
    for how, protocols in by_result.items():
        if protocols:
            names = "; ".join(TESTS[one].label.lower() for one in protocols)
            of = "" if parts else f" of {words.counted(n, 'test')}"
            parts.append(f"{how} in {len(protocols)}{of}" + (f" ({names})" if how != "as well" else ""))
    return f"A random subset of the same size does {', '.join(parts)}."


def _against_random(judged: Verdict) -> str:
    difference, se = judged.random_difference, judged.se
    if judged.strategy == "random":
        return "The ranking tasks are themselves a random subset."
    if difference is None:
        return "A random subset of the same size was not tested."
    share = words.percent((judged.pairs or 0.0) - difference)
    if se is None:
        return (
            f"A random subset of the same size gets {share}%. The uncertainty of the difference could not be "
            "estimated."
        )
    points = f"{words.percent(abs(difference))} points, SE {words.percent(se)}"
    how = "does better:" if difference < 0 else "gets only"
    how = how if is_clear(difference, se) else "does about as well:"
    return f"A random subset of the same size {how} {share}% (difference {points})."
