from leaderboard.actions.names import rename
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import RARE, ActionCommand


class Command(ActionCommand):
    group = RARE
    action, row, find = rename, "agent", agent_named
