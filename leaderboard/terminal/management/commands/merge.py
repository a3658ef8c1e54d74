from leaderboard.actions.names import merge
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import ActionCommand


class Command(ActionCommand):
    action, row, find = merge, "agent", agent_named
