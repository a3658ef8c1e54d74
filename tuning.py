"""What stood here is `analytics.research.tuning`; for one version its old name answers with the new one."""

import sys

if __name__ == "__main__":
    sys.stderr.write("python -m tuning: now python -m analytics.research.tuning\n")
    sys.exit(2)
