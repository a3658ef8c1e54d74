from leaderboard.terminal.command import RARE, RenamedCommand


class Command(RenamedCommand):
    group = RARE
    help = "Former name of `export-benchmark`."
    renamed_to = "export-benchmark"
