from leaderboard.actions.names import merge
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import RARE, ActionCommand


class Command(ActionCommand):
    group = RARE
    action, row, find = merge, "agent", agent_named
