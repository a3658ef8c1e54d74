from leaderboard.terminal.command import RARE, RenamedCommand


class Command(RenamedCommand):
    group = RARE
    help = "Former name of `import-benchmark`."
    renamed_to = "import-benchmark"
