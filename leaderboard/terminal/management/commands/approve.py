from leaderboard.actions.outcomes import approve
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import ActionCommand


class Command(ActionCommand):
    action, row, find = approve, "agent", agent_named
    reason = "why this is no second try; it is kept"
