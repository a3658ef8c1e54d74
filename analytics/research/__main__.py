"""Run the command line: ``python -m analytics.research``."""

from analytics.programs import use_no_pandas
from analytics.research.cli import main

use_no_pandas()
raise SystemExit(main())
