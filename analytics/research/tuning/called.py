"""Run a function as a harness: ``python -m analytics.research.tuning.called package.module:function``.

The request is on stdin.
"""

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> int:
    """Read the request, call the function with it, and write what it returns where the request says."""
    sys.path.insert(0, os.getcwd())
    module, _, name = sys.argv[1].partition(":")
    request = json.load(sys.stdin)
    answer = getattr(importlib.import_module(module), name)(request)
    Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
