"""How this program was called, for the next steps that it prints."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

INSTALLED = "bandstand-server"
PROGRAM = INSTALLED if Path(sys.argv[0]).name == INSTALLED else "manage.py"
is_site_of_file = False  # set where the database goes with the command


def set_command(slug: str, settings: Sequence[str]) -> str:
    """Return the command that changes the policy of a benchmark."""
    if is_site_of_file and "MAKELEVEL" in os.environ:
        return f'make site FILE=… OPTIONS="--set {" ".join(settings)}"'
    if is_site_of_file:
        return f"{PROGRAM} site FILE --set {' '.join(settings)}"
    return f"{PROGRAM} policy {slug} --set {' '.join(settings)}"
