"""One benchmark to another installation, with all that happened on it and every board under its number.

The file is a zip: `about.json`, and for each table the rows of the benchmark as COPY prints them. On arrival
the ids of a table all grow by one number, so that their order, which decides which of two deliveries was the
earlier, stays. Scaffolds and models are found by name, accounts by address. Left behind are roles, tokens,
invitations and webhooks, which are rights and secrets of an installation; events, job runs and the audit,
which tell what was done there; and what is computed anew (`AgentScores`, rendered pages).
"""

from leaderboard.operations.transfer.exporting import export_benchmark
from leaderboard.operations.transfer.importing import import_benchmark

__all__ = ["export_benchmark", "import_benchmark"]
