"""What a file's other columns say of its agents and runs, beside the outcomes.

`version`, `organisation` and `weights` (or `open_model`) are the agent's, `link`, `logs`, `code`, `report`
and `commit` are addresses of a run.
A column is taken only where it says one such thing of each; else it stays metadata of the outcomes, as all
columns do that the flat file does not name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from leaderboard.submissions.parsing.envelope import MAX_LINK_LENGTH, is_address
from leaderboard.submissions.parsing.flat import WEIGHTS, FlatFile, is_name, weights_in

OF_AGENT: Mapping[str, Callable[[str], bool]] = {"version": is_name, "organisation": is_name} | {
    name: meanings.__contains__ for name, meanings in WEIGHTS.items()
}
LINKS = ("link", "logs", "code", "report", "commit")


class FileMetadata:
    """A file without the columns taken, and what these say.

    `delivery` numbers the runs of the agents, (n_rows,), in order of agent and run; `links` has one entry
    for each of them; `of_agent` has for each name in `AGENT_OPTIONAL` the text of each agent.
    """

    def __init__(self, flat: FlatFile) -> None:
        # Number the pairs of agent and run that occur, by agent, then run; no run comes first
        run = [setting.run or "" for setting in flat.settings]
        run_of_setting = np.searchsorted(np.unique(run), run)
        label = flat.agent.astype(np.int64) * len(run) + run_of_setting[flat.setting]
        self.delivery: np.ndarray = np.unique(label, return_inverse=True)[1]
        of_agent = {name: _one_each(flat, name, flat.agent, rule) for name, rule in OF_AGENT.items()}
        of_run = {name: _one_each(flat, name, self.delivery, _is_link) for name in LINKS}
        self.taken = tuple(name for name, texts in (of_agent | of_run).items() if texts is not None)
        metadata = {name: column for name, column in flat.metadata.items() if name not in self.taken}
        self.flat = replace(flat, metadata=metadata)
        nothing = [""] * len(flat.agents)
        self.of_agent = {name: texts or nothing for name, texts in of_agent.items()}
        pairs = zip(self.of_agent["weights"], self.of_agent.pop("open_model"), strict=True)
        self.of_agent["weights"] = [weights_in(*texts) for texts in pairs]
        columns = {name: texts for name, texts in of_run.items() if texts}
        self.links = [
            {name: texts[i] for name, texts in columns.items() if texts[i]}
            for i in range(int(self.delivery.max()) + 1)
        ]


def _is_link(text: str) -> bool:
    return len(text) <= MAX_LINK_LENGTH and text.isprintable() and is_address(text)


def _one_each(
    flat: FlatFile, name: str, owner: np.ndarray, is_allowed: Callable[[str], bool]
) -> list[str] | None:
    """Return the one text that each owner's rows state, "" where none does; None: the column is not taken."""
    if name not in flat.metadata:
        return None
    column = flat.metadata[name].combine_chunks().dictionary_encode()
    has_text = column.is_valid().to_numpy(zero_copy_only=False)
    texts, code = column.dictionary.to_pylist(), pc.fill_null(column.indices, -1).to_numpy()
    pairs = np.unique(owner[has_text].astype(np.int64) * len(texts) + code[has_text])
    owners = pairs // max(len(texts), 1)
    if (np.diff(owners) == 0).any() or not all(is_allowed(text) for text in texts):
        return None
    texts_by_owner = [""] * (int(owner.max()) + 1)
    for who, pair in zip(owners.tolist(), pairs.tolist(), strict=True):
        texts_by_owner[who] = texts[pair % len(texts)]
    return texts_by_owner
