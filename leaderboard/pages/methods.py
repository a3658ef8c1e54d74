"""What the page on methods explains: every statistic in a plain sentence, then its formula and its source.

What a word means is told where it is defined (`words.LEGEND`, `validated.LEGEND`); formulas are those of the
modules named as their source. Pages link to the anchors: `/methods#rank-sets`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.pages.access import for_all
from leaderboard.studies.answers import validated, words

SAID = words.LEGEND


@dataclass(frozen=True)
class Method:
    """One statistic. `terms` are words that belong to it, each with what it means."""

    anchor: str
    name: str
    plain: str
    formula: tuple[str, ...] = ()
    source: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodSection:
    name: str
    methods: tuple[Method, ...]


NDZOMGA = "Ndzomga, Efficient Benchmarking of AI Agents"
MESSING = "Messing, Hidden Measurement Error in LLM Pipelines"

SCORES = MethodSection(
    "Scores",
    (
        Method(
            "score",
            "Score",
            "The mean of an agent’s outcomes over the tasks that are named beside it; no score is shown "
            "without them.",
            (
                "X_aj = mean over settings of the mean over valid trials of task j",
                "score of a = Σ_j X_aj / number of tasks",
            ),
            f"{NDZOMGA}, Eq. 1; analytics/outcome_table.py",
        ),
        Method(
            "counted",
            "Which outcomes count",
            "The same number of trials counts on each task that an agent was asked for at once: the smallest "
            "number delivered. Earlier deliveries count first. Deliveries that together hold every task "
            "equally often are a whole run: its mean fills the places that are left. Of other deliveries the "
            "lowest outcomes count first. Other tasks count once the agent has run all of them. All that an "
            "operator loads counts. Retired tasks, conditions that are not compared and submissions that the "
            "policy leaves out do not count.",
            (
                "trials of a task = min(n, the fewest delivered of any of these tasks)",
                "n: those asked for with them",
            ),
            "analytics/record",
            {
                "Invalid": "It counts as a failure until an operator confirms that the harness failed; then "
                "it is missing, and may be delivered again.",
                "Missing": "It leaves a gap, which may cost the agent its rank. Where the policy says "
                f"`missing = zero`, {words.ZERO}; while a task that was asked for has none, as many trials "
                "of each count as any of them has.",
            },
        ),
        Method(
            "estimated",
            "Estimated score, ~",
            f"{SAID['~']} What the agent ran is kept, and the rest is what a model of all agents and tasks "
            "expects of it.",
            (
                "score = (Σ over the tasks it ran of X_aj + Σ over the others of P_aj) / m",
                "P_aj = σ(θ_a − b_j), the Rasch model of everything that was run; θ_a begins at the mean of "
                "the ten agents before it",
            ),
            "on Rasch (1960); selection/staged/model.py",
        ),
        Method(
            "standard-error",
            "Standard error, ± SE",
            f"{SAID['± SE']} It is about exactly these tasks, so that how much tasks differ is no part of "
            f"it.",
            (
                "V_a = Σ_j s²_aj / R_aj / k², with s²_aj the variance of the R_aj trials of task j",
                "one trial a task: ω̂·p̃(1 − p̃)/k, with ω̂ the share of p(1 − p) that repeated trials vary by",
                "SE = √(V_a + what runs, prompts and judges add, where that was measured)",
            ),
            "analytics/differences/trial_variances.py, finite_ranks.py",
            {"≤": SAID["≤"], "naive": SAID["naive"]},
        ),
        Method(
            "intervals",
            "95% interval",
            f"{SAID['95%']} For all tasks it covers {words.COVERS['full']}.",
            (
                "measured: score ± t·SE, t the 97.5% point with Satterthwaite’s degrees of freedom",
                "estimated: from how far estimates were off for agents whose full score is known, each left "
                "out of its own estimate",
            ),
            "Barber, Candès, Ramdas & Tibshirani (2021), jackknife+; Dunn, Wasserman & Ramdas (2022); "
            "selection/intervals",
            {"Bounds": SAID["Bounds"]},
        ),
    ),
)
ORDER = MethodSection(
    "Ranks",
    (
        Method("rank", "Rank", SAID["Rank"], ("rank of a = 1 + #{b: score of b > score of a}",)),
        Method(
            "rank-sets",
            "May hold ranks",
            SAID["May hold"],
            (
                "a beats b when score_a − score_b > c·√(V_a + V_b)",
                "ranks of a: from 1 + #{b beats a} to n − #{a beats b}",
                "c: what the largest of all standardised differences stays under in 95% of simulated errors",
            ),
            "Mogstad, Romano, Shaikh & Wilhelm (2024); analytics/differences/finite_ranks.py, "
            "domain_ranks.py",
        ),
        Method("ties", "Ties", SAID["Ties"], ("a and b are tied when neither beats the other",)),
        Method(
            "first",
            "Could be the best",
            f"{SAID['Could be the best']} It asks less than ranks of everybody at once, so that it is "
            "smaller than the agents that may hold rank 1.",
            (
                "a is left out when some b leads it by more than c_a·√(V_a + V_b)",
                "c_a: what the largest standardised lead over a stays under in 95% of simulated errors",
            ),
            "Hsu (1981), multiple comparisons with the best; analytics/differences/first.py",
        ),
        Method(
            "targets",
            "All tasks, the subset, tasks like these",
            "What a score and its interval are about is chosen on the board, and named beside every score.",
            terms={
                words.sentence(words.TARGETS[name].format(n="…"))[:-1]: meaning
                for name, meaning in words.COVERS.items()
            },
        ),
        Method("marks", "Marks", "Words beside an agent say how it came to its score.", terms=words.MARKS),
    ),
)
TASKS = MethodSection(
    "Which tasks",
    (
        Method(
            "band",
            "The band",
            "New agents begin with tasks that some agents pass and some fail: those whose pass rate lies in "
            "the band of the benchmark’s policy.",
            ("p_j = mean of X_ij over the agents that ran all tasks", "task j is in when lo ≤ p_j ≤ hi"),
            f"{NDZOMGA}, §3.3; selection/bands.py",
        ),
        Method(
            "staged",
            "Batch after batch",
            "A new agent runs a first batch of tasks near a pass rate of ½. It stops once its "
            "standard error is at most 3 points and it cannot reach the podium, or once its standard error "
            "is under 1 point and it cannot lead. A random share of the agents that could stop runs "
            "everything all the same: these check the estimates.",
            (
                "goes on when se > .03",
                "or when score + 2·se ≥ podium and (se ≥ .01 or score + 2·se ≥ best)",
                "podium, best: scores of the P-th best and of the best teaching agent; P = 3 unless the "
                "policy says otherwise",
            ),
            "on Ndzomga’s subset of tasks; selection/staged",
        ),
        Method(
            "calibration",
            "Calibration",
            "Where the policy asks new agents for the subset, it may name Ridge or a line in place of the "
            "model. They are fitted to the agents that ran everything.",
            ("s_cal = √(mean of (y − ŷ)²) over agents that the estimate had not seen",),
            f"{NDZOMGA}, §5.1; selection/full_scores, selection/intervals",
        ),
        Method(
            "phases",
            "Phases",
            "A benchmark’s phase follows from its data and is set by nobody.",
            terms={phase.replace("_", " "): meaning for phase, meaning in words.PHASES.items()},
        ),
    ),
)
HOLDS = MethodSection(
    "Whether it holds",
    (
        Method(
            "replay",
            "Replay",
            "The service’s own rule is run again over agents whose results on all tasks are known, in order "
            "of date. What it would have published is compared with the full runs.",
            (
                "saved = share of all task runs that the rule did not ask for",
                "pairs in order: of all pairs of agents, those that the published scores order as full runs "
                "do",
            ),
            "selection/staged/replay.py, verdict.py",
        ),
        Method(
            "validation",
            "Validation protocols",
            "Each figure comes from agents that are taken for new: everything is chosen and fitted without "
            "them, and only then are they looked at.",
            (
                "pairs in order of i = share of the agents j with y_j ≠ y_i that the subset puts on the "
                "right side of i, a tie for ½",
                "skill = (ρ − ρ₀)/(1 − ρ₀)",
                "κ = (pairs − pairs₀)/(1 − pairs₀)",
                "ρ₀, pairs₀: the same with the outcomes of each task shuffled among the agents",
                "standard errors: a jackknife over agents, or over models where a model has several",
            ),
            f"{NDZOMGA}, §3.4; selection/validation, selection/folds.py",
            {one.label: words.sentence(one.meaning) for one in validated.PROTOCOLS.values()},
        ),
        Method(
            "figures",
            "Figures of a validation",
            "What the columns of a validation say.",
            terms=validated.LEGEND,
        ),
        Method(
            "drift",
            "Drift monitors",
            "Monitors watch whether agents, tasks and the harness still are what they were when the tasks "
            "were chosen; each is held against a board on which nothing changes.",
            (
                "alert: a statistic beyond what it reaches by chance over all looks at it, however many "
                "there are",
            ),
            f"{NDZOMGA}, §5.1 and §6; Ville (1939) for e-values; Page (1954) for CUSUM; analytics/drift",
            {
                "Rank fidelity": "Whether the subset still orders agents as the tasks outside it do.",
                "Published order": "Whether agents that were stopped and ran everything since stand as their "
                "estimates said.",
                "Capability jump": "Whether agents became better all at once on the subset.",
                "Band erosion": "How many tasks have left the band, beyond what other agents would move by "
                "chance.",
                "Calibration": "How often full scores that became known lay outside their intervals.",
                "Calibration residuals": "Whether estimates have become too low or too high.",
                "Saturation": "Whether the best agents pass nearly all of the subset.",
                "Tuning to the subset": "Whether newcomers do worse outside the subset than on it.",
                "Scaffold novelty": "How many of the latest agents have a scaffold that nobody had before.",
                "Harness failures": "Whether the harness fails more often than it did.",
                "Run-to-run noise": "Whether repeated trials of a task agree less than they did.",
                "Cost per task": "Whether a task costs more, or less, than it did.",
            },
        ),
    ),
)
NOISE = MethodSection(
    "Where the noise comes from",
    (
        Method(
            "error-bars",
            "Variance components",
            "How much each source (agents, tasks, which tasks suit whom, prompts, judges, trials) adds to "
            "the variance of a single outcome.",
            ("Var(y) = Σ_α σ²_α over sources α", "σ²_α by restricted maximum likelihood, none below 0"),
            f"{MESSING}, Eq. 1 and Appendix C; Patterson & Thompson (1971); analytics/reml",
        ),
        Method(
            "dstudy",
            "What more trials, prompts, judges or tasks would do",
            "A D-study projects the error of one agent’s mean under another design from the components of "
            "this one.",
            ("SE² = Σ_α σ²_α / (product of the numbers of levels of the facets in α)",),
            f"{MESSING}, Appendix C; Brennan, Generalizability Theory (2001); analytics/tee/dstudy.py",
        ),
        Method(
            "icc",
            "ICC",
            f"{SAID['ICC']} At 1 a task is always solved or never; at 0 which task it is tells nothing. "
            "Where a board compares several conditions each has its own, on the agent’s page.",
            (
                "ICC(1,1) = (MSB − MSW) / (MSB + (n₀ − 1)·MSW)",
                "MSB, MSW: mean squares between tasks and within; n₀: trials a task",
            ),
            "Shrout & Fleiss (1979); Intraclass correlation for agentic evaluation; analytics/trials/icc.py",
        ),
    ),
)
MONEY = MethodSection(
    "Money",
    (
        Method(
            "costs",
            "Costs",
            "What a run of all tasks, one trial each, costs in US dollars, as whoever ran it stated.",
            (
                "~ where an agent ran a part of the tasks: the cost of these, every task taken to cost the "
                "same; and where some of its trials state no cost: they may be the dear ones",
            ),
            "",
            {
                words.UNBELIEVED: SAID[words.UNBELIEVED],
                "–": "Not stated.",
            },
        ),
    ),
)
TRUST = MethodSection(
    "Trust",
    (
        Method(
            "trust",
            "How far outcomes can be checked",
            "The service cannot check reported outcomes or see private reruns. Logs, reruns and trusted "
            "accounts protect a board. The level of an agent is the lowest of its submissions. A delivery "
            "waits for an operator where its agent is implausible beside five verified ones, or states "
            "fractions where theirs are 0 or 1. A plausible invented run is not noticed.",
            terms={words.TRUST[level]: text for level, text in words.TRUST_MEANS.items()},
        ),
        Method(
            "rerun",
            "Verified by a rerun",
            "An operator runs at least 20 tasks again that the service draws at random, with the same agent "
            "under the conditions that the submission states. It is verified if the two runs agree within "
            "chance.",
            (
                "pass/fail: min(1, 2·P(B ≤ min(b, c))) ≥ .01, B binomial with n = b + c and share ½",
                "b, c: tasks that the first or the second run alone passed",
                "graded: |d̄|·√n / s of the differences, at most t_{n−1,.995}",
            ),
            "McNemar (1947); Student (1908); analytics/rerun.py",
        ),
    ),
)
PARTS = (SCORES, ORDER, TASKS, HOLDS, NOISE, MONEY, TRUST)


@require_safe
@for_all
def methods(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/methods.html", {"parts": PARTS})
