from leaderboard.actions.names import rename
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import ActionCommand


class Command(ActionCommand):
    action, row, find = rename, "agent", agent_named
