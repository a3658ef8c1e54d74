"""The list of commands, in groups: what each does is the first sentence of its help.

Nothing is imported for it, neither Django's models nor a command.
"""

import sys

from django.core.management import ManagementUtility

COMMANDS = {
    "daily": {
        "backup": "Write the whole database to a file with pg_dump.",
        "load": "Load results into a benchmark; a new one is created.",
        "policy": "Show the rules of a benchmark, or change them.",
        "recompute": "Compute the ranking from all results and publish the board.",
        "review": "Show waiting submissions with the reason, accept or refuse them.",
        "serve": "Serve the pages and run the scheduler until Ctrl-C.",
        "site": "Write the pages of a benchmark as files, for any web server.",
        "standings": "Print the latest board, an older one, or the changes between two.",
        "token": "Print a new API token for a person, once.",
        "validate": (
            "Test whether the ranking tasks order new agents as all tasks would, and store the figures."
        ),
    },
    "occasional": {
        "assign": "Print which tasks an agent should run, why, and until when.",
        "benchmark": "Show or set title, description, licence and other details of a benchmark.",
        "confirm": "Confirm that the harness caused the invalid results of a submission.",
        "createsuperuser": "Open an account that operates everything.",
        "demo": (
            "Load the example (SWE-bench Verified, 57 agents) or your file, publish its board and print it."
        ),
        "drift": "Check whether the ranking tasks still work, store the result and print it.",
        "export": "Write all results that count to a file or folder.",
        "invite": "Print a link that opens an account or gives an existing account a role.",
        "migrate": "Create or upgrade the tables.",
        "replay": "Simulate the service on past full runs, oldest agent first.",
        "reruns": "Show, open or close alerts and rerun requests.",
        "reselect": "Show, make or decide a proposal for other ranking tasks.",
        "retire": "Remove a broken task from scores and ranking tasks.",
        "scheduler": (
            "Keep boards up to date, run nightly studies, watch for drift and send webhooks, until stopped."
        ),
        "tasks": "Create the tasks of a benchmark from a list; a new benchmark is created.",
        "unload": "Withdraw submissions, all or none.",
        "variance": "Estimate the sources of error (variance components by REML) and store the study.",
        "verify": "Mark a submission as verified after you checked its logs or ran it yourself.",
    },
    "rare": {
        "approve": (
            "Rank an agent again after its owner took results back, or count an agent whose "
            "results equal another's on every task."
        ),
        "erase": (
            "Remove the name of an agent everywhere, also from published boards, or close an account "
            "and remove its address and name."
        ),
        "export-benchmark": "Write a benchmark with its whole history to a file for `import-benchmark`.",
        "import-benchmark": (
            "Read a file of `export-benchmark` and store the benchmark with its whole history, all "
            "or nothing."
        ),
        "merge": (
            "Join two names of one agent: all results of the first, past and future, count for the second."
        ),
        "rename": "Give an agent another name.",
        "restore": "Read a file of `backup` into an empty database with pg_restore, all or nothing.",
        "run-job": "Run one long job of the scheduler.",
        "trust": "Trust an account, for example your own CI.",
        "webhooks": "Show, add or disable webhooks, show deliveries, or send one again.",
    },
}


class CommandLine(ManagementUtility):
    """Django's command line, whose `help` lists daily commands first."""

    def execute(self) -> None:
        if self.argv[1:] in ([], ["help"], ["-h"], ["--help"]):
            sys.stdout.write(f"{self.main_help_text()}\n")
        else:
            super().execute()

    def main_help_text(self, commands_only: bool = False) -> str:
        if commands_only:
            return str(super().main_help_text(commands_only=True))
        lines = [f"{self.prog_name} COMMAND. For its options: {self.prog_name} help COMMAND"]
        for group, texts in COMMANDS.items():
            lines += ["", group.capitalize(), *(f"  {name:<18}{text}" for name, text in texts.items())]
        return "\n".join([*lines, "", f"All commands, also Django's own: {self.prog_name} help --commands"])
