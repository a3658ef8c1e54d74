"""Run the command line: ``python -m analytics``."""

from analytics.cli import main

raise SystemExit(main())
