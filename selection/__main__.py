"""Run the command line: ``python -m selection``."""

from analytics.programs import use_no_pandas
from selection.cli import main

use_no_pandas()
raise SystemExit(main())
