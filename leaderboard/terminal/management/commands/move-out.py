from leaderboard.terminal.command import RenamedCommand


class Command(RenamedCommand):
    help = "Is called `export-benchmark` now."
    renamed_to = "export-benchmark"
