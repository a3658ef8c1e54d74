"""``python -m analytics.research panels FILE``: what disagreement predicts, and what an ensemble gains.

No item is relabelled, no pipeline is judged, and no vote is taken.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. I.1 (items), Q (tiers), F.2 (ensembles).
Hanley & McNeil, *Radiology* 143 (1982) 29-36 (area). Kish, *Survey Sampling*, 1965 (design effect).
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.command_line import MAX_SEED, Answer, add_command, outcomes_of, plain, whole
from analytics.drift.rank_correlation import midranks
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.reml import RESIDUAL, VarianceFit, fit
from analytics.resampling import generator
from analytics.research.surrogate import column_of_numbers, column_of_texts
from analytics.text import named

MIN_ITEMS, MIN_WRONG = 30, 10
N_PERMUTATIONS = 2_000
MIN_PARTITIONS, MAX_PARTITIONS = 20, 500
N_DRAWS = 400
SLACK = 1e-9


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "panels",
        _panels,
        summary="What disagreement of judges predicts, tier by tier, and what an ensemble gains.",
        about="An item is a task of an agent; a pipeline is a prompt, judge, temperature, run and trial.",
    )
    questions = parser.add_mutually_exclusive_group(required=True)
    questions.add_argument(
        "--reference", metavar="COL", help="column of labels, 1 or 0: which majorities are wrong"
    )
    questions.add_argument("--tier", metavar="COL", help="column with the tier of each judge")
    questions.add_argument("--members", metavar="A,B,…", help="agents whose outcomes are averaged")
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of all draws (0)")


def _panels(arguments: argparse.Namespace) -> Answer:
    flat = outcomes_of(arguments)
    rows = np.flatnonzero(flat.valid)
    item = flat.agent[rows].astype(np.int64) * len(flat.tasks) + flat.task[rows]
    cell = flat.setting[rows].astype(np.int64) * (int(flat.trial.max()) + 1) + flat.trial[rows]
    if arguments.reference is not None:
        label = column_of_numbers(flat, arguments.reference, "panel_option")[rows]
        return _items(flat, item, cell, flat.outcome[rows], label, arguments.seed)
    if arguments.tier is not None:
        return _tiers(flat, rows, item, arguments.tier, arguments.seed)
    members = [name.strip() for name in arguments.members.split(",")]
    unknown = [name for name in members if name not in flat.agents]
    if unknown:
        raise CoreError(f"no agent {named(unknown[0])}", code="panel_option")
    places = [flat.agents.index(name) for name in dict.fromkeys(members)]
    cells, code = np.unique(cell, return_inverse=True)
    outcomes = np.full((len(flat.agents), len(flat.tasks), cells.size), np.nan)
    outcomes[flat.agent[rows], flat.task[rows], code] = flat.outcome[rows]
    chosen = outcomes[places]
    n = np.count_nonzero(~np.isnan(chosen), axis=2)
    by_tasks = np.where(n > 0, np.nansum(chosen, axis=2) / np.maximum(n, 1), np.nan)
    common = ~np.isnan(by_tasks).any(axis=0)
    values: dict[str, Any] = {"members": [flat.agents[i] for i in places]}
    shown = dict(values)
    for target, of_members in (("domain", by_tasks[:, common, None]), ("finite", chosen)):
        try:
            values[target] = plain(ensemble(of_members, finite=target == "finite")) | {"reason": ""}
        except CoreError as refusal:
            if refusal.code not in ("not_measured", "constant"):
                raise
            values[target] = {"reason": str(refusal)}
        shown[target] = {name: value for name, value in values[target].items() if name != "covariance"}
    return Answer(values, shown)


def _items(
    flat: FlatFile, item: CodeArray, cell: CodeArray, outcome: FloatArray, label: FloatArray, seed: int
) -> Answer:
    mask = np.isin(item, np.unique(item[~np.isnan(label)]))
    label = label[mask]
    names, code = np.unique(item[mask], return_inverse=True)
    cells, place = np.unique(cell[mask], return_inverse=True)
    votes = np.full((names.size, cells.size), np.nan)
    votes[code, place] = outcome[mask]
    known = ~np.isnan(label)
    reference = np.full(names.size, np.nan)
    reference[code[known]] = label[known]
    if (reference[code[known]] != label[known]).any():
        raise CoreError("an item has two different labels", code="panel_option")
    result = disagreement(votes, reference, seed=seed)
    mean, low, high = result["r_null"]
    values = {
        "n_items": int(names.size),
        "n_pipelines": int(cells.size),
        **{name: result[name] for name in ("n_wrong", "area", "p_value", "r")},
        "r_null": {"mean": mean, "lower": low, "upper": high},
        "items": [
            {
                "agent": flat.agents[one // len(flat.tasks)],
                "task": flat.tasks[one % len(flat.tasks)],
                "variance": float(v),
                "accuracy": float(a),
            }
            for one, v, a in zip(names.tolist(), result["variance"], result["accuracy"], strict=True)
        ],
        "notes": ["r is below 0 by arithmetic; what tells is the area, ½ without a relation"],
    }
    return Answer(values, {name: value for name, value in values.items() if name != "items"})


def disagreement(votes: FloatArray, reference: FloatArray, *, seed: int) -> dict[str, Any]:
    """Relate the variance of votes to their majority's errors; an even vote is not wrong.

    votes: (N, C); 0 or 1; NaN where a pipeline gave none, two at least for an item.
    reference: (N,); 0 or 1.
    Returns: `variance` and `accuracy` (N,); `n_wrong`; `r` of these two, and `r_null`, its mean, 2.5% and
        97.5% points when other majorities are wrong; `area` of the variance for "majority wrong", ½ without a
        relation, and its two-sided `p_value` by the same permutations.
    """
    if votes.ndim != 2 or len(votes) != reference.size:
        raise CoreError(f"votes of shape {votes.shape} for {reference.size} labels", code="votes")
    cast = votes[~np.isnan(votes)]
    if not (np.isin(cast, (0, 1)).all() and np.isin(reference, (0, 1)).all()):
        raise CoreError("votes and labels are 0 or 1", code="votes")
    if len(votes) < MIN_ITEMS:
        raise CoreError(f"{len(votes)} items with a label; at least {MIN_ITEMS} are needed", code="few_items")
    if n_single := int((np.count_nonzero(~np.isnan(votes), axis=1) < 2).sum()):
        raise CoreError(
            f"{n_single:,} of {len(votes):,} items with a label have under two votes, and so no variance",
            code="votes",
        )
    mean = np.nanmean(votes, axis=1)
    variance = mean * (1.0 - mean)
    accuracy = np.where(reference == 1, mean, 1.0 - mean)
    wrong = accuracy < 0.5
    n_wrong = int(wrong.sum())
    if n_wrong < MIN_WRONG or n_wrong == wrong.size:
        raise CoreError(
            f"the majority is wrong on {n_wrong} of {wrong.size} items; at least {MIN_WRONG} are needed",
            code="few_wrong",
        )
    if np.ptp(variance) == 0:
        raise CoreError("the votes vary alike on all items", code="constant")
    agreed = np.maximum(accuracy, 1.0 - accuracy)

    def correlation(wrong: Mask) -> float:
        return float(np.corrcoef(variance, np.where(wrong, 1.0 - agreed, agreed))[0, 1])

    auc, null, beyond = area(variance, wrong), np.empty(N_PERMUTATIONS), np.empty(N_PERMUTATIONS)
    for draw in range(N_PERMUTATIONS):
        other = generator(seed, "wrong majorities", draw).permutation(wrong)
        null[draw], beyond[draw] = correlation(other), area(variance, other)
    as_far = np.count_nonzero(np.abs(beyond - 0.5) >= abs(auc - 0.5) - 1e-12)
    return {
        "variance": variance,
        "accuracy": accuracy,
        "n_wrong": n_wrong,
        "r": correlation(wrong),
        "r_null": (float(null.mean()), *np.quantile(null, [0.025, 0.975]).tolist()),
        "area": auc,
        "p_value": float((1 + as_far) / (1 + N_PERMUTATIONS)),
    }


def area(value: FloatArray, event: Mask) -> float:
    """Area under the curve: P(value, (N,), is larger at an event than elsewhere), ties ½."""
    n = int(event.sum())
    ranks = midranks(np.round(value, 9))
    return float((ranks[event].sum() - n * (n + 1) / 2) / (n * (event.size - n)))


def _tiers(flat: FlatFile, rows: CodeArray, item: CodeArray, column: str, seed: int) -> Answer:
    names, judges = np.unique([setting.judge or "" for setting in flat.settings], return_inverse=True)
    judge = judges[flat.setting[rows]]
    prompts = np.array([str(setting.prompt_variant) for setting in flat.settings])
    prompt = np.unique(prompts, return_inverse=True)[1].astype(np.int64)[flat.setting[rows]]
    texts = np.array(column_of_texts(flat, column, "panel_option"))[rows]
    tiers_of = [set(texts[judge == i].tolist()) for i in range(len(names))]
    for name, tier in zip(names.tolist(), tiers_of, strict=True):
        if len(tier) != 1 or "" in tier:
            raise CoreError(
                f"judge {named(name)} has {len(tier)} tiers, or none, in column {column!r}",
                code="panel_option",
            )
    tier_of = [min(one) for one in tiers_of]
    values = plain(tiers(item, judge, prompt, flat.outcome[rows], names.tolist(), tier_of, seed=seed))
    ends = {"tier": "name", "ratio": "ratio", "from": "lower", "to": "upper"}
    shown = {
        "": [{head: one[name] for head, name in ends.items()} | one["components"] for one in values["tiers"]],
        "spread of item:judge": values["spread"],
        "p": values["p_value"],
        "partitions": values["n_partitions"],
    }
    return Answer(values, shown)


Partition = frozenset[tuple[int, ...]]


def tiers(
    item: CodeArray,
    judge: CodeArray,
    prompt: CodeArray,
    score: FloatArray,
    judges: Sequence[str],
    tier: Sequence[str],
    *,
    seed: int,
) -> dict[str, Any]:
    """Fit each tier, and compare σ²_item:judge between tiers and with other groups of these judges.

    judge, judges, tier: places in the names, (n_rows,); names, and the tier of each.
    Returns: `tiers`, each with its `components` and the `ratio` σ²_item:judge/σ²_item and its 95% interval;
    the `spread` of σ²_item:judge; its `p_value` among `n_partitions`.
    """
    names = sorted(set(tier))
    groups = tuple(tuple(i for i, one in enumerate(tier) if one == name) for name in names)
    if len(names) < 2:
        raise CoreError(f"{len(names)} tier of judges; two are compared at least", code="one_tier")
    for name, group in zip(names, groups, strict=True):
        if len(group) < 2:
            raise CoreError(f"tier {name!r} has one judge, who disagrees with nobody", code="one_judge")
    partitions = _partitions(tuple(range(len(judges))), tuple(sorted(map(len, groups))))
    n_partitions = len(partitions)
    if n_partitions < MIN_PARTITIONS:
        raise CoreError(
            f"the judges can be dealt to such tiers in {n_partitions} ways; under {MIN_PARTITIONS} no "
            "difference between tiers can be told",
            code="few_partitions",
        )

    def fitted(group: tuple[int, ...]) -> VarianceFit:
        mask = np.isin(judge, group)
        columns = {"item": item[mask], "judge": judge[mask], "prompt": prompt[mask]}
        terms = ["item", "item:judge"]
        if np.unique(columns["prompt"]).size > 1:
            terms += ["prompt", "item:prompt", "prompt:judge"]
        return fit(columns, score[mask], random=" + ".join(terms), fixed="judge")

    def spread(partition: Sequence[tuple[int, ...]] | Partition) -> float:
        variances = [apart[group] for group in partition]
        return max(variances) - min(variances)

    fits = {group: fitted(group) for group in groups}
    estimates = [
        {"name": name, "judges": [judges[i] for i in group], **_tier(name, one, seed)}
        for name, (group, one) in zip(names, fits.items(), strict=True)
    ]
    apart = {group: one.components["item:judge"] for group, one in fits.items()}
    others = [one for one in _drawn(partitions, seed) if one != frozenset(groups)]
    for group in {group for one in others for group in one} - set(apart):
        apart[group] = fitted(group).components["item:judge"]
    as_large = sum(spread(one) >= spread(groups) - SLACK for one in others)
    return {
        "tiers": estimates,
        "spread": spread(groups),
        "p_value": (1 + as_large) / (1 + len(others)),
        "n_partitions": n_partitions,
    }


def _tier(name: str, fitted: VarianceFit, seed: int) -> dict[str, Any]:
    rng = generator(seed, "tier", *name.encode("utf-8", "surrogatepass"))
    drawn = _ratio(fitted.likelihood.refits(fitted.parameters, N_DRAWS, rng), fitted.names)
    lower, upper = np.quantile(drawn, [0.025, 0.975]).tolist()
    return {
        "components": {**fitted.components, RESIDUAL: fitted.residual},
        "ratio": float(_ratio(fitted.parameters, fitted.names)),
        "lower": lower,
        "upper": upper,
    }


def _ratio(parameters: FloatArray, names: Sequence[str]) -> FloatArray:
    """σ̂²_αλ/σ̂²_α, of one fit or of many; a large number where items do not differ at all."""
    between, within = parameters[..., names.index("item:judge")], parameters[..., names.index("item")]
    return np.asarray(between / np.maximum(within, SLACK), dtype=np.float64)


def _partitions(judges: tuple[int, ...], sizes: tuple[int, ...]) -> list[Partition]:
    if not sizes:
        return [frozenset()]
    partitions: dict[Partition, None] = {}
    for group in combinations(judges, sizes[0]):
        rest = tuple(judge for judge in judges if judge not in group)
        for other in _partitions(rest, sizes[1:]):
            partitions[frozenset({group}) | other] = None
    return list(partitions)


def _drawn(partitions: list[Partition], seed: int) -> list[Partition]:
    if len(partitions) <= MAX_PARTITIONS:
        return partitions
    places = generator(seed, "partitions").choice(len(partitions), MAX_PARTITIONS, replace=False)
    return [partitions[place] for place in places.tolist()]


def ensemble(outcomes: FloatArray, *, finite: bool = False) -> dict[str, Any]:
    """Return the `variance` of the mean of members, and how many independent ones it is worth (`effective`).

    outcomes: (A, m, R); trials of all members on all tasks; NaN where one is missing, which `finite` allows.
    finite: over trials within tasks, of a task those that all members have; else over tasks.
    Returns: also the `covariance`, (A, A), and `n_tasks`.
    """
    n_members, n_tasks = outcomes.shape[:2]
    if n_members < 2:
        raise CoreError(f"{n_members} member; an ensemble has two at least", code="one_member")
    if n_tasks < 2:
        raise CoreError(f"{n_tasks} common tasks; two are needed at least", code="few_tasks")
    if finite:
        shared = ~np.isnan(outcomes).any(axis=0)
        n = shared.sum(axis=1)
        if not (n > 1).any():
            raise CoreError("not measured: no task has two trials that all members have", code="not_measured")
        there = np.where(shared, outcomes, 0.0)
        means = there.sum(axis=2) / np.maximum(n, 1)
        beyond = np.where(shared, there - means[:, :, None], 0.0).reshape(len(outcomes), -1)
        covariance, n_tasks = beyond @ beyond.T / float((n - 1)[n > 1].sum()), int(np.count_nonzero(n > 1))
    else:
        covariance = np.cov(outcomes.mean(axis=2))
    variance = float(covariance.mean())
    if not variance > 1e-15:
        raise CoreError("the mean of the members does not vary", code="constant")
    effective = float(np.diag(covariance).mean()) / variance
    return {"covariance": covariance, "variance": variance, "effective": effective, "n_tasks": n_tasks}
