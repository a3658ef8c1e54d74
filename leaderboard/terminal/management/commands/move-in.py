from leaderboard.terminal.command import RenamedCommand


class Command(RenamedCommand):
    help = "Former name of `import-benchmark`."
    renamed_to = "import-benchmark"
