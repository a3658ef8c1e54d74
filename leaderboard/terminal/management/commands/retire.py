from leaderboard.actions.outcomes import restore, retire
from leaderboard.operations.benchmarks import task_of
from leaderboard.terminal.command import ActionCommand


class Command(ActionCommand):
    action, row, find = retire, "task", task_of
    undo_flag, undo_action = "restore", restore
