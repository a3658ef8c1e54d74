"""Run the command line: ``python -m analytics``."""

from analytics.cli import main
from analytics.programs import use_no_pandas

use_no_pandas()
raise SystemExit(main())
