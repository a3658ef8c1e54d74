"""What people said of one agent, as the last recompute kept it; nothing is estimated."""

from analytics.record import People
from leaderboard.catalog.models import Agent
from leaderboard.studies.models import AgentScores
from leaderboard.studies.outcomes import counted_tasks
from leaderboard.studies.queries import active_subset
from leaderboard.studies.record_cache import by_agent, keys_of
from leaderboard.studies.rules import counting_of
from leaderboard.submissions.queries import deliveries

UNREAD = "what counts of this agent has changed, and is read for the next board"


def people_of(agent: Agent) -> People | None:
    """Return what they said; None where nothing is known of it.

    What is kept of outcomes that no longer are those that count tells nothing.
    """
    rows = AgentScores.objects.filter(agent=agent).values_list("key", "content__row__people")
    key, row_people = rows.first() or ("", None)
    if row_people is None:
        return None
    people, counts_now = People.of_plain(row_people), _key(agent)
    if counts_now is None:
        return None
    return people if key == counts_now else People(people.n_labels, people.n_tasks, reason=UNREAD)


def _key(agent: Agent) -> str | None:
    """The name of what counts of it now; None where nothing does."""
    benchmark = agent.benchmark
    policy, tasks, _ = counted_tasks(benchmark)
    counting = counting_of(policy, active_subset(benchmark))
    mine = [one for one in deliveries(benchmark, withdrawn=True) if one.agent_id == agent.pk]
    if all(one.withdrawn for one in mine):
        return None
    return keys_of(by_agent(mine), tasks, counting).get(agent.pk)
