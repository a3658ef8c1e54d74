"""Run the command line: ``python -m selection``."""

from selection.cli import main

raise SystemExit(main())
