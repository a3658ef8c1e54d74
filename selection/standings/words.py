"""Sentences: what a board says of itself, worded once for every page, table, file and message.

Nothing is computed here but counts of what stands in `Standings`, and nothing heavy is imported. Agents'
names are data: who shows them escapes them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analytics.names import first_names as first_names
from analytics.text import NOT_STATED as NOT_STATED
from analytics.text import counted as counted
from analytics.text import enumerated
from selection.schema.board import AtTarget, Line, Standings, TargetLine, TrialsAdvice
from selection.standings import terms
from selection.standings.changes import changed_lists as changed_lists
from selection.standings.changes import changes_text as changes_text
from selection.standings.changes import entered_text as entered_text
from selection.standings.changes import moved_text as moved_text
from selection.standings.changes import place_text as place_text
from selection.standings.terms import CHOSEN_TASKS as CHOSEN_TASKS
from selection.standings.terms import COVERS as COVERS
from selection.standings.terms import HIDDEN as HIDDEN
from selection.standings.terms import IN_PART as IN_PART
from selection.standings.terms import LEGEND as LEGEND
from selection.standings.terms import MARKS as MARKS
from selection.standings.terms import PHASES as PHASES
from selection.standings.terms import TARGETS as TARGETS
from selection.standings.terms import TASKS_OF_NEW_AGENT as TASKS_OF_NEW_AGENT
from selection.standings.terms import TRUST as TRUST
from selection.standings.terms import TRUST_MEANS as TRUST_MEANS
from selection.standings.terms import UNBELIEVED as UNBELIEVED
from selection.standings.terms import ZERO as ZERO
from selection.standings.terms import at_least as at_least
from selection.standings.terms import believed as believed
from selection.standings.terms import clause as clause
from selection.standings.terms import cost_text as cost_text
from selection.standings.terms import costs as costs
from selection.standings.terms import error_text as error_text
from selection.standings.terms import half_width as half_width
from selection.standings.terms import headline_agents as headline_agents
from selection.standings.terms import in_headlines as in_headlines
from selection.standings.terms import in_order as in_order
from selection.standings.terms import money as money
from selection.standings.terms import more_versions as more_versions
from selection.standings.terms import percent as percent
from selection.standings.terms import rank_text as rank_text
from selection.standings.terms import sentence as sentence
from selection.standings.terms import task_set as task_set
from selection.standings.terms import tasks_of as tasks_of
from selection.standings.terms import tells_trust as tells_trust
from selection.standings.terms import whole_costs as whole_costs

N_ALIKE = 3  # agents named
N_CONDITIONS = 10  # named in a sentence: a delivery may have hundreds
SHARE_INCOMPLETE = 4  # one in so many agents without outcomes names the other way to count them
MAX_NAMED = 10  # of the agents that could be the best
# What one unranked agent does, and what several do.
FOLDED = ("shares another version's row", "share another version's row")
LACKING = ("has missing results", "have missing results")

# -------------------------------------------------------------------------------------------------- the board


def headline(board: Standings, target: str = "") -> str:
    """Return who could be the best, with how much certainty, and how many are not ranked."""
    return " ".join(filter(None, headline_parts(board, target)))


def headline_parts(board: Standings, target: str = "") -> tuple[str, str]:
    """Return the headline in two: the answer, which a face may set bold, and what follows it."""
    target = target or board.target
    ranked = [line for line in in_order(board, target) if line.at[target].rank is not None]
    if not ranked and board.targets[target].n_tasks == 0:
        return sentence(board.targets[target].reason), ""
    answer, rest = _best(board, target, ranked)
    if not ranked:
        return answer, rest
    return answer, " ".join(filter(None, (rest, unranked_text(board, target))))


def _best(board: Standings, target: str, ranked: Sequence[Line]) -> tuple[str, str]:
    if not ranked:
        return "No ranking yet:", unranked_text(board, target, of=True)
    named = [line for line in ranked if in_headlines(board, line)]
    if not named:
        why = Counter(_why_not_named(board, line) for line in ranked)
        no = " ".join(
            f"{counted(n, 'ranked agent')} {'is' if n == 1 else 'are'} {no}." for no, n in why.items()
        )
        return f"No {_one_of(board)} is ranked yet.", no
    best, is_all = named[0], len(named) == len(ranked) and not is_outdone(board, target)
    # All tasks are what a score is over, unless it says otherwise.
    on = "" if target == "full" else f" on {tasks_of(board, target)}"
    score, reason = score_text(best.at[target]), sentence(board.targets[target].reason)
    if len(ranked) == 1:
        if len(board.agents) > 1:
            return f"Only {best.agent} is ranked:", f"{score}{on}."
        return "One agent so far:", f"{best.agent}, {score}{on}."
    first = [line for line in named if line.agent in board.targets[target].may_be_first]
    agents, above = _counted(board, named, ranked, target), _above(board, target, ranked)
    the = "" if is_all else "the "
    leaders = [line for line in named if line.at[target].rank == best.at[target].rank]
    scores = f"{score}{on}{_for(board, leaders)}."
    others = leaders[1].agent if len(leaders) == 2 else f"{len(leaders) - 1:,} more"
    who = f"{best.agent} and {others} score highest"
    if len(leaders) == 1:
        who = f"{best.agent} scores highest"
    if not first or len(named) == 1:
        who += "" if is_all else f" of the {agents}"
        who = who if len(named) > 1 else f"{best.agent} is the only {_one_of(board)}"
        return f"{who}:", f"{scores}{above}{reason and f' {reason}'}"
    if len(first) == len(named):
        last = score_text(named[-1].at[target])
        ends = f"Scores{on} range from {last} to {score}." if last != score else f"All score {score}{on}."
        everybody = f"Both {agents.partition(' ')[2]}" if len(named) == 2 else f"Any of the {agents}"
        return f"{everybody} could be the best.", f"{ends}{above}"
    if len(first) == 1:
        if is_all:
            next_ = [line for line in ranked[1:] if (line.at[target].rank_lower or 1) <= 2]
            above = f" {f'{len(next_):,} agents could be' if next_[1:] else f'{next_[0].agent} is'} second."
        return (
            f"{best.agent} is the best of {the}{agents} (95%):",
            f"{score}{on}{_for(board, [best])}.{above}",
        )
    among = "" if is_all else " of them"
    return (
        f"{len(first):,} of {the}{agents} could be the best.",
        f"{who}{among}: {scores}{_cheapest(board, first, leaders)}{above}",
    )


def _counted(board: Standings, named: Sequence[Line], ranked: Sequence[Line], target: str) -> str:
    """Return 59 agents; 57 verified agents where others are ranked too; 59 ranked agents where outdone."""
    agents = "agents" if len(named) == len(ranked) else headline_agents(board)
    return f"{len(named):,} {'ranked ' if is_outdone(board, target) else ''}{agents}"


def is_outdone(board: Standings, target: str = "") -> bool:
    """Whether an unranked agent scores above all that headlines are made from, whatever is missing."""
    target = target or board.target
    results = [(in_headlines(board, line), line.at[target]) for line in board.agents]
    scores = [at.score or 0.0 for heads, at in results if heads and at.rank is not None]
    floors = [at.bounds[0] for _, at in results if at.rank is None and at.bounds and terms.leaves_open(at)]
    return bool(scores and floors) and max(floors) > max(scores)


def _above(board: Standings, target: str, ranked: Sequence[Line]) -> str:
    """Say how many agents stand above those that headlines are made from; empty where none does."""
    rank = min(line.at[target].rank or 0 for line in ranked if in_headlines(board, line))
    above = [line for line in ranked if (line.at[target].rank or 0) < rank]
    why = Counter(_why_not_named(board, line) for line in above)
    return "".join(
        f" {counted(n, 'agent')} ranked higher {'is' if n == 1 else 'are'} {no}." for no, n in why.items()
    )


def _why_not_named(board: Standings, line: Line) -> str:
    if at_least(line.trust, board.headline_from):
        return "recalled to run the remaining tasks"
    return terms.NOT_HEADING[board.headline_from]


def _one_of(board: Standings) -> str:
    return headline_agents(board).replace("agents", "agent").replace("are not", "is not")


def among_text(board: Standings, target: str = "") -> str:
    """Name the agents that headlines are made from; empty where all ranked agents are."""
    ranked = [line for line in board.agents if line.at[target or board.target].rank is not None]
    return "" if all(in_headlines(board, line) for line in ranked) else headline_agents(board)


def highest_text(board: Standings, target: str = "") -> str:
    """Return highest score, and of which agents where others score more."""
    target = target or board.target
    ranks = [(in_headlines(board, line), line.at[target].rank or 0) for line in board.agents]
    named = [rank for heads, rank in ranks if heads and rank]
    is_highest = not named or min(named) == min(rank for _, rank in ranks if rank)
    of = f"{'ranked ' * is_outdone(board, target)}{'agents' if is_highest else headline_agents(board)}"
    return "highest score" if of == "agents" else f"highest score of {of}"


def best_text(board: Standings, target: str = "") -> str:
    """Return could be the best (95%), and of which agents where not of all ranked ones."""
    among = among_text(board, target)
    return f"could be the best{among and f' of the {among}'} (95%)"


def withdrawn_text(names: Sequence[str]) -> str:
    """Say who of a board was withdrawn after it was published; empty where nobody was."""
    return f"Withdrawn since: {first_names(names)}." if names else ""


def could_be_first(board: Standings) -> str:
    """Return 11 of 32 could be the best: the headline where there is room for no more."""
    ranked = [line for line in board.agents if line.at[board.target].rank is not None]
    named = [line for line in ranked if in_headlines(board, line)]
    if not named:
        return f"no {_one_of(board) if ranked else 'agent'} is ranked yet"
    if len(named) == 1:
        if len(ranked) > 1:
            return f"one {_one_of(board)} so far"
        return "only one agent is ranked" if len(board.agents) > 1 else "one agent so far"
    n_first = sum(line.agent in board.targets[board.target].may_be_first for line in named)
    agents = _counted(board, named, ranked, board.target)
    if not n_first:
        return f"{agents}, order not known"
    agents = agents if len(named) < len(ranked) else f"{len(ranked):,}"
    return f"{n_first:,} of {agents} could be the best"


def _cheapest(board: Standings, first: Sequence[Line], leaders: Sequence[Line]) -> str:
    """Name the smallest of the costs that were measured; of all whole costs where fewer than two were."""
    known, whole = costs(board), whole_costs(board)
    with_cost = [line for line in first if line.agent in known]
    in_full = [line for line in with_cost if line.agent in whole]
    measured = [line for line in in_full if not terms.is_reckoned(line)]
    alike = measured if len(measured) > 1 else in_full
    if len(alike) < 2:
        return ""
    lowest = min(whole[line.agent] for line in alike)
    cheapest = [line for line in alike if money(whole[line.agent]) == money(lowest)]  # as they are printed
    of = f"with a {'known' if alike == with_cost else 'measured'} cost"
    if len(in_full) == len(first) and lowest == min(whole[line.agent] for line in first):
        of = f"of the {len(first):,}"
    if len(cheapest) == len(first):
        return ""
    if leaders == cheapest:
        return f" {'It is' if len(cheapest) == 1 else 'They are'} also the cheapest {of}."
    named, each = enumerated([line.agent for line in cheapest]), cost_text(cheapest[0])
    if len(cheapest) > N_ALIKE:
        named = counted(len(cheapest), "agent")
    if len(cheapest) > 1:
        return f" The cheapest {of} are {named} at {each} each."
    return f" The cheapest {of} is {named} at {each}."


def score_text(at: AtTarget) -> str:
    """Return 66.9 ± 3.1%, the longer side of the 95% interval; 66.9% where there is none."""
    around = f" ± {percent(half)}" if (half := half_width(at)) is not None else ""
    return f"{'~' if at.estimated else ''}{percent(at.score or 0.0)}{around}%"


def _for(board: Standings, first: Sequence[Line]) -> str:
    """Say what a run of these costs; empty where that is not known of each."""
    known = whole_costs(board)
    if all(other.cost_usd is None for other in board.agents):
        return "" if any(other.cost_basis == HIDDEN for other in board.agents) else ". Costs are not stated"
    if not all(line.agent in known for line in first):
        return ""
    lowest, highest = (cost_text(end(first, key=lambda line: known[line.agent])) for end in (min, max))
    return f" at {lowest if lowest == highest else f'{lowest} to {highest}'} per full run"


def unranked_text(board: Standings, target: str = "", *, of: bool = False) -> str:
    """Say how many agents are not ranked and why; empty where all are.

    of: whether to say of how many.
    """
    target = target or board.target
    lacking = [line for line in board.agents if _why_unranked(board, line, target) == LACKING]
    if lacking and not board.targets[target].n_ranked:
        return _lacking_text([line.at[target].reason for line in lacking], len(board.agents))
    groups = Counter(_why_unranked(board, line, target) for line in board.agents if not line.at[target].rank)
    if not groups:
        return ""
    n = sum(groups.values())
    if set(groups) == {FOLDED}:
        return f"{counted(n, 'version')} {FOLDED[n > 1]}."
    number = f"{n:,} of {counted(len(board.agents), 'agent')}" if of else counted(n, "agent")
    if set(groups) == {LACKING}:
        tasks = _n_lacking(board, target)
        reasons = "results of some trials are missing"
        if tasks:
            reasons = f"results are missing for {tasks}" if n == 1 else f"each lacks results for {tasks}"
    elif len(groups) == 1:
        (why,) = groups
        reasons = f"{'it' if n == 1 else 'they'} {why[n > 1]}"
    else:
        reasons = ", ".join(f"{m:,} {why[m > 1]}" for why, m in groups.most_common())
    return f"{number} {'is' if n == 1 else 'are'} not ranked: {reasons}."


def _lacking_text(reasons: Sequence[str], n_agents: int) -> str:
    """Say how many agents lack too many results, and how many so few that these could be estimated."""
    few = [reason for reason in reasons if terms.ESTIMATE_NEEDS in reason]
    n_many, of = len(reasons) - len(few), f" of {counted(n_agents, 'agent')}"
    have = "has" if n_many == 1 else "have"
    text = f"{n_many:,}{of} {have} too many missing results." if n_many else ""
    if not few:
        return text
    have = "has" if len(few) == 1 else "have"
    _, needs, n_full_runs = few[0].partition(terms.ESTIMATE_NEEDS)
    who = f"{text} {len(few):,}" if text else f"{len(few):,}{of}"
    return f"{who} {have} only a few missing results, but {needs}{n_full_runs}."


def _n_lacking(board: Standings, target: str) -> str:
    """Return 10 tasks, 1 to 25 tasks: what each unranked agent has no result for; empty where one has all."""
    n_tasks = board.targets[target].n_tasks
    lacking = [n_tasks - line.at[target].n_valid for line in board.agents if line.at[target].rank is None]
    low, high = min(lacking), max(lacking)
    if not low:
        return ""
    return counted(high, "task") if low == high else f"{low:,} to {counted(high, 'task')}"


def _why_unranked(board: Standings, line: Line, target: str) -> tuple[str, str]:
    """Verb and rest of the reason that an agent shares with others."""
    if line.condition and _too_few(board.conditions.compared) in line.at[target].reason:
        few = f"too few results under {_or(board.conditions.compared)}"
        return f"has {few}", f"have {few}"
    if line.condition:
        return _both(f"ran only under {line.condition}")
    if line.at[target].folded_under:
        return FOLDED
    if "withheld" in line.marks:
        return "waits for an operator's approval", "wait for an operator's approval"
    if "chosen tasks" in line.marks and line.how == "estimated":
        return _both("ran only tasks chosen for each agent")
    nobody = board.targets[target].reason
    if nobody and line.at[target].reason == nobody:
        return _both("could be ranked, but fewer than half of all")
    alone = 20 * line.n_tasks < 19 * board.n_tasks
    if target != "subset" and line.how == "estimated" and alone:
        return _both("did not run all tasks")
    return LACKING


def _both(why: str) -> tuple[str, str]:
    return why, why


def next_step_text(board: Standings, command: "Command") -> str:
    """Say how agents can be ranked where none is; empty where some are, or no setting helps."""
    if not board.next_step:
        return ""
    purpose = "count missing results as failures"
    if board.next_step == "universe=common":
        purpose = "rank agents on the tasks that nearly all of them ran"
    return f"Run `{command([board.next_step])}` to {purpose}."


Command = Callable[[Sequence[str]], str]  # what changes settings such as missing=gap


def flags(settings: Sequence[str]) -> str:
    """Return the flags of a command line that reads a file."""
    return " ".join(f"--{setting.replace('=', ' ')}" for setting in settings)


def covers_text(board: Standings, target: str = "") -> str:
    """Say what the 95% intervals of a target are about."""
    target = target or board.target
    target_line: TargetLine = board.targets[target]
    covers = target_line.covers
    if not any(line.at[target].estimated for line in board.agents):
        covers = covers.removesuffix(terms.OF_ESTIMATES)
    parts = (
        f"The 95% intervals are for {covers}."
        if _has_intervals(board, target)
        else "No score here has an interval.",
        coverage_text(board) if target == "full" else "",
        first_text(board, target),
        judged_text(target_line),
        sentence(target_line.reason),
    )
    return " ".join(filter(None, parts))


def _has_intervals(board: Standings, target: str) -> bool:
    return any(line.at[target or board.target].lower is not None for line in board.agents)


def judged_text(target_line: TargetLine) -> str:
    """Say how ranks and ties were judged; empty where there are none, and for one agent."""
    if target_line.n_ranked < 2:
        return ""
    method = terms.METHODS.get(target_line.method)
    of = f"Rank ranges and ties come from {method}." if method else ""
    return " ".join(filter(None, (of, sentence(target_line.note))))


def first_text(board: Standings, target: str = "") -> str:
    """Name the agents that could be the best; empty where that leaves nobody out."""
    target = target or board.target
    target_line = board.targets[target]
    ranked = [line for line in in_order(board, target) if line.at[target].rank is not None]
    heading = [line for line in ranked if in_headlines(board, line)]
    names = [line.agent for line in heading if line.agent in target_line.may_be_first]
    if not names or len(names) == len(heading):
        return ""
    is_all = len(heading) >= target_line.n_ranked
    among, agent = "" if len(names) == 1 else "one of ", "agent" if is_all else _one_of(board)
    answer = f"The best {agent} (95%) is {among}{first_names(names, MAX_NAMED)}"
    n_lowest = sum(line.at[target].rank_lower == 1 for line in board.agents)
    if not is_all or n_lowest <= len(names):
        return f"{answer}."
    return f"{answer}. Other rank ranges can include 1, because all ranges must be correct at the same time."


def second_run_text(board: Standings, target: str = "") -> str:
    """Say what a second full run of the leader would score; empty where that is its score, or unknown."""
    second_run = board.targets[target or board.target].second_run
    if second_run is None or percent(second_run.expected) == percent(second_run.score):
        return ""
    is_bounded = terms.UNMEASURED["trials"] in board.not_measured and not board.trial_noise
    more = ", or more, because trial noise is only known as an upper bound" if is_bounded else ""
    return (
        f"The {highest_text(board, target)} may be partly luck: on average, a second full run of "
        f"{second_run.agent} would score about {percent(second_run.expected)}%{more}."
    )


def coverage_text(board: Standings) -> str:
    """Say how often intervals of estimated scores were right, if under 95% or unknown; else empty."""
    coverage = board.coverage
    if coverage is None:
        return ""
    if coverage.share is None:
        return (
            "Intervals of estimated scores could not be checked against later full runs: there are too few."
        )
    if not coverage.falls_short:
        return ""
    return (
        f"Read the intervals of estimated scores as {percent(coverage.share)}% intervals, not 95%: they "
        f"contained {coverage.n_covered:,} of {counted(coverage.n, 'later full score')}."
    )


def scores_text(board: Standings, target: str = "") -> str:
    """Say which tasks scores are on, and for how many agents they are measured and estimated."""
    target = target or board.target
    estimated = [
        line for line in board.agents if line.at[target].estimated and line.at[target].rank is not None
    ]
    n_measured = board.targets[target].n_ranked - len(estimated)
    text = f"Scores are on {tasks_of(board, target)}"
    if not estimated or board.subset is None:
        return f"{text}."
    others = [line for line in estimated if "chosen tasks" not in line.marks]
    more = [
        line.n_tasks
        for line in others
        if line.at[target].source.startswith(terms.CALIBRATED) and line.n_tasks > line.at["subset"].n_valid
    ]
    parts = [f"measured for {counted(n_measured, 'agent')}"]
    if n := len(others) - len(more):
        parts.append(f"estimated (~) for {n:,} from {task_set('subset', board.subset.size)}")
    if more:
        ran = "the tasks that each ran" if len(more) > 1 else f"the {counted(more[0], 'task')} that it ran"
        parts.append(f"estimated (~) for {len(more):,} from {ran}")
    if n_chosen := len(estimated) - len(others):
        parts.append(f"estimated (~) for {n_chosen:,} from tasks chosen for each")
    return f"{text}: {', '.join(parts)}."


def phase_text(board: Standings, assignment: str) -> str:
    """Say what the phase means, and what a new agent runs: `assignment` is staged, subset or full."""
    is_without = board.subset is None and board.phase in ("provisional", "ongoing")
    phase = "unsuited" if is_without else board.phase
    return " ".join(filter(None, (PHASES[phase], TASKS_OF_NEW_AGENT[assignment].get(phase))))


def verdict_text(board: Standings) -> str:
    """Say whether the board may be trusted; empty where it was not validated or the phase says it."""
    return "" if board.verdict is None or board.subset is None else board.verdict.sentence


def trust_text(board: Standings) -> str:
    """Say in few words how many pairs the ranking tasks put in order; empty as `verdict_text` is.

    A random subset of the same size puts p − d of pairs in order, d the paired difference of the verdict.
    """
    verdict = board.verdict
    if verdict is None or board.subset is None:
        return ""
    if verdict.pairs is None or verdict.protocol == "replay":
        return verdict.sentence
    random = ""
    if verdict.random_difference is not None:
        random = f" (random subset: {percent(verdict.pairs - verdict.random_difference)}%)"
    return (
        f"New agents: {percent(verdict.pairs)}% of pairs are ordered as a full run would order them{random}."
    )


def target_text(board: Standings) -> str:
    """Say why the board does not rank by the full score; empty where it does, or where that was asked for."""
    return f"Ranks use the ranking tasks only: {clause(board.why_target)}." if board.why_target else ""


def trials_text(trials: TrialsAdvice | None) -> str:
    """Say how many trials of the ranking tasks cost as much as a full run, and what each is worth."""
    if trials is None:
        return ""
    n = trials.n_conditions
    at_most, under = "at most " if trials.upper_bound else "", " under each" if n > 1 else ""
    options = enumerated(
        [
            f"{at_most}{percent(one.se)} points with {counted(one.n_trials, 'trial')}{under}"
            + ("" if one.cost_usd is None else f" for {money(one.cost_usd)}")
            for one in trials.options
        ]
    )
    known = sentence(trials.why_upper_bound)
    each = f" under each of the {n:,} compared conditions" if n > 1 else ""
    times = {1: "once", 2: "twice"}.get(trials.recommended, f"{trials.recommended:,} times")
    advice = f"For at most the cost of a full run{each}, you can run each ranking task {times}{under}."
    errors = f"The standard error of a typical agent's score on them is {options}."
    return " ".join(filter(None, (advice, errors, known)))


def bounds_text(at: AtTarget) -> str:
    """Say what the missing outcomes leave open; empty where none is missing, and where all are."""
    if at.bounds is None or not terms.leaves_open(at):
        return ""
    low, high = at.bounds
    missing = "the missing result" if at.n_missing == 1 else f"all {at.n_missing:,} missing results"
    return f"{percent(low)}% if {missing} failed, {percent(high)}% if passed"


def measured_text(board: Standings) -> str:
    """Say which sources of error were measured and are in the intervals; empty where no study found any."""
    sources = "; ".join([*board.measured[:1], *map(terms.clause, board.measured[1:])])
    return sources and sentence(f"{sources}. The intervals of measured scores include this")


def not_measured_text(board: Standings, target: str = "") -> str:
    """Say what is in no interval, and what is there as an upper bound alone."""
    absent = "; ".join(in_no_interval(board))
    text = f"The intervals do not include: {absent}." if absent else ""
    return " ".join(filter(None, (text, bounded_text(board, target))))


def in_no_interval(board: Standings) -> tuple[str, ...]:
    """Return the sources of error without an estimate that no interval includes: all but the trials."""
    return tuple(source for source in board.not_measured if source != terms.UNMEASURED["trials"])


def bounded_text(board: Standings, target: str = "") -> str:
    """Say how intervals include trials that were never repeated; empty where some were."""
    repeated = terms.UNMEASURED["trials"] not in board.not_measured
    under = " under one condition" if board.conditions.compared else ""
    unrepeated = f"has two valid trials of a task{under}"
    if board.trial_noise and _has_intervals(board, target):
        who = "No verified or trusted agent" if repeated else "No agent"
        return (
            f"{who} {unrepeated}. The intervals use the trial noise of another benchmark "
            f"({board.trial_noise})."
        )
    if repeated:
        return ""
    if not _has_intervals(board, target):
        return f"No agent {unrepeated}."
    return f"No agent {unrepeated}, so the intervals use an upper bound for trial noise."


def trial_noise_text(used: str, of_rules: str) -> str:
    """Say that intervals borrow the noise of trials, or that they need not; empty where none is stated."""
    if used:
        return (
            "no verified or trusted agent ran a task twice, so intervals and ranks borrow run-to-run noise "
            f"({used}). They are right if trials vary as much here"
        )
    if of_rules:
        return (
            f"the stated run-to-run noise ({of_rules}) is not used: verified or trusted agents here have "
            "repeated trials"
        )
    return ""


def confidence_text(board: Standings, target: str = "") -> str:
    """Say how sure ranks are, and in short what no interval includes; empty without rank ranges."""
    if not any(line.at[target or board.target].rank_lower is not None for line in board.agents):
        return ""
    absent = in_no_interval(board)
    short = [text for source, text in terms.SHORT_UNMEASURED.items() if source in absent]
    untested = f" They say nothing of other {enumerated(short)}." if short else ""
    return f"With 95% confidence, all rank ranges are correct at the same time.{untested}"


def notices(
    board: Standings,
    *,
    offer: str = "",
    universe: str = "",
    uneven: Sequence[str] = (),
    zero: bool = False,
    not_revalidated: str = "",
    n_unheard: int = 0,
    trial_noise: str = "",
    podium: str = "",
) -> tuple[str, ...]:
    """Return what the reader must know before the ranks, a sentence each.

    offer: how more agents could be ranked, where fewer than half are; see `analytics.record.offer`.
    universe: which tasks are active, where not all are.
    uneven: what agents lack of trials or failures; see `analytics.record.absent`.
    zero: whether missing outcomes count as failures already.
    not_revalidated: that runs asked for on an alert did not come.
    n_unheard: full runs of accounts that have two others; see `analytics.record.conditions`.
    trial_noise: that of the rules.
    """
    n_ranked, n = board.targets[board.target].n_ranked, len(board.agents)
    why = [_why_unranked(board, line, "full") for line in board.agents if line.how == "incomplete"]
    n_lacking = why.count(LACKING)
    return tuple(
        sentence(text)
        for text in (
            failed_text(board.n_missing_failed) or (ZERO if zero else ""),
            universe,
            not_revalidated,
            podium,
            target_text(board),
            trial_noise_text(board.trial_noise, trial_noise),
            unheard_text(board, n_unheard),
            compared_text(board.conditions.compared, board.conditions.left_out),
            *uneven,
            unranked_text(board, of=True),
            offer if n_ranked and 2 * n_ranked < n else "",
            f"{counted(n_lacking, 'agent')} could be ranked if an operator counts missing results as failures"
            if n_ranked and not zero and SHARE_INCOMPLETE * n_lacking > n
            else "",
        )
        if text
    )


def failed_text(n: int) -> str:
    """Say how many missing results count as failures; empty where none does."""
    if not n:
        return ""
    return f"{counted(n, 'missing result')} {'counts as a failure' if n == 1 else 'count as failures'}"


def unheard_text(board: Standings, n: int) -> str:
    """Say that full runs do not bring the subset nearer; empty where it is fixed or there are none."""
    if not n or board.phase not in ("cold_start", "provisional"):
        return ""
    runs = f"{counted(n, 'full run')} {'does' if n == 1 else 'do'}"
    return (
        f"{runs} not count towards choosing the ranking tasks. Only two agents of an account count, unless "
        "an operator trusts the account"
    )


def other_notices(board: Standings, command: "Command | None" = None) -> tuple[str, ...]:
    """Return the notices but for what the headline says already: who is not ranked.

    command: of the operator, by which two notices say how they are undone: what counts as a failure, and
        which tasks count.
    """
    ranked_notice = unranked_text(board, of=True)
    undo = {"missing=gap": sentence(failed_text(board.n_missing_failed))}
    if board.n_left_out:
        undo["universe=all"] = f"{board.n_tasks} of {board.n_tasks + board.n_left_out} tasks are active"

    def with_undo(text: str) -> str:
        setting = next((one for one, start in undo.items() if start and text.startswith(start)), "")
        return f"{text} To undo: `{command([setting])}`" if command and setting else text

    return tuple(with_undo(text) for text in board.notices if text != ranked_notice)


def elsewhere(ran: str, compared: Sequence[str]) -> str:
    """Say that an agent ran under conditions that are not compared."""
    compares = f"; this board compares {_and(compared)}" if compared else ""
    return f"ran only under {ran}{compares}"


def lacking_under(compared: Sequence[str], n_lacking: int, n_asked: int, *, zero: bool) -> str:
    """Say that an agent has too few outcomes under the conditions that are compared."""
    lack, what = "lacks" if n_lacking == 1 else "lack", "result" if zero else "valid result"
    of = f"{n_lacking:,} of its {counted(n_asked, 'task')}"
    return f"{of} {lack} a {what} {_too_few(compared)}{'half' if zero else '5%'}"


def _too_few(compared: Sequence[str]) -> str:
    return f"under {_or(compared)}, more than "


def _lacking(compared: Sequence[str]) -> str:
    return f"results on more than 5% of tasks under {_or(compared)}"


def uncounted(ran: str, compared: Sequence[str]) -> str:
    """Say to whoever delivers that all outcomes of an agent are of conditions that are not compared."""
    return f"{elsewhere(ran, compared)}. These results do not count; the agent is not ranked"


def uncounted_agents(ran: str, compared: Sequence[str], agents: Sequence[str]) -> str:
    """Say the same of several agents to an operator who loads them."""
    are = "agent is" if len(agents) == 1 else "agents are"
    return (
        f"{counted(len(agents), 'agent')} {elsewhere(ran, compared)}. These results do not count; "
        f"the {are} not ranked ({first_names(agents)})"
    )


def lacking_agents(compared: Sequence[str], agents: Sequence[str]) -> str:
    """Say to an operator who loads agents that they have too few outcomes under what is compared."""
    lack = "lacks" if len(agents) == 1 else "lack"
    are = "it is" if len(agents) == 1 else "they are"
    return (
        f"{counted(len(agents), 'agent')} {lack} {_lacking(compared)}, so {are} not ranked "
        f"({first_names(agents)})"
    )


def uncounted_text(left_out: Sequence[str], compared: Sequence[str]) -> str:
    """Say that some outcomes of an agent are of conditions that are not compared."""
    return f"results under {_and(left_out)} do not count: this board compares {_and(compared)}"


def _and(names: Sequence[str]) -> str:
    if len(names) > N_CONDITIONS:
        return first_names(names, N_CONDITIONS)
    return "; ".join(names) if any(", " in name for name in names) else enumerated(names)


def _or(names: Sequence[str]) -> str:
    return " or ".join([*names[:N_CONDITIONS], *(["another"] if len(names) > N_CONDITIONS else [])])


def compared_text(compared: Sequence[str], left_out: Sequence[tuple[str, int]]) -> str:
    """Say which conditions outcomes are from, and which are left out; empty where none varies."""
    if not compared:
        return ""
    other = first_names(
        [f"{name} (full runs of {counted(n, 'agent')})" for name, n in left_out], N_CONDITIONS
    )
    return f"agents are compared under {_and(compared)}" + (f"; left out: {other}" if other else "")


# ------------------------------------------------------------------------------------------------- an agent


def about(line: Line) -> tuple[tuple[str, str], ...]:
    """Return what else is stated of an agent, as label and text; links are not among it."""
    cost = ""
    if line.cost_usd is not None:
        cost = f"{money(line.cost_usd)} per full run, {terms.BASIS[line.cost_basis]}"
    rows = (
        ("Version", line.version),
        ("Organisation", line.organisation),
        ("Weights", line.weights),
        ("Cost", cost),
        ("Submissions", f"{line.n_submissions:,}" if line.n_submissions > 1 else ""),
        ("Invalid trials", f"{line.n_invalid:,}" if line.n_invalid else ""),
    )
    return tuple((label, text) for label, text in rows if text)


# ----------------------------------------------------------------------------------------------------- money


def savings_text(savings: Mapping[str, Any] | None, *, with_money: bool = True) -> str:
    """Say what was not run so far, in tasks and money; empty where all was."""
    so_far = savings["so_far"] if savings else {"n_runs": 0}
    if not so_far["n_runs"]:
        return ""
    agents, tasks = counted(so_far["n_runs"], "agent"), counted(so_far["n_tasks_saved"], "task")
    n_chosen = so_far.get("n_chosen") or 0
    if 0 < n_chosen < so_far["n_runs"]:
        agents += f" ({n_chosen:,} with tasks chosen for {'it' if n_chosen == 1 else 'each'})"
    saved = ""
    if with_money and so_far["saved"] is not None:
        n_unknown, whose = so_far["n_not_measured"], "its" if so_far["n_runs"] == 1 else "their"
        saved = f", {money(so_far['saved'])} at {whose} own mean cost per task"
        saved += f" ({n_unknown:,} without a usable cost left out)" if n_unknown else ""
    runs = "a full run" if so_far["n_runs"] == 1 else "full runs"
    return f"So far {agents} saved {tasks} of {runs}{saved}."
