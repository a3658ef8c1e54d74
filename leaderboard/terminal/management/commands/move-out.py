from leaderboard.terminal.command import RenamedCommand


class Command(RenamedCommand):
    help = "Former name of `export-benchmark`."
    renamed_to = "export-benchmark"
