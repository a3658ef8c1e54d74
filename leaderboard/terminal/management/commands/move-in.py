from leaderboard.terminal.command import RenamedCommand


class Command(RenamedCommand):
    help = "Is called `import-benchmark` now."
    renamed_to = "import-benchmark"
