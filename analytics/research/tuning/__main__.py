"""Run the command line: ``python -m analytics.research.tuning``."""

from analytics.programs import use_no_pandas
from analytics.research.tuning.cli import main

use_no_pandas()
raise SystemExit(main())
