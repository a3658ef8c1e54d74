"""The former name of `import-benchmark`, for one version."""

from leaderboard.terminal.command import RenamedCommand


class Command(RenamedCommand):
    help = "Is called `import-benchmark` now."
    renamed_to = "import-benchmark"
