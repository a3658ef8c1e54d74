"""Run the command line: ``python -m tuning``."""

from analytics.programs import use_no_pandas
from tuning.cli import main

use_no_pandas()
raise SystemExit(main())
