"""Run the command line: ``python -m tuning``."""

from tuning.cli import main

raise SystemExit(main())
