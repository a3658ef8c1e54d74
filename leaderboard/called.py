"""How this program was called, for the next steps that it prints."""

import sys
from pathlib import Path

INSTALLED = "bandstand-server"
PROGRAM = INSTALLED if Path(sys.argv[0]).name == INSTALLED else "manage.py"
