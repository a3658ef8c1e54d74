"""Run a function as a harness: ``python -m tuning.called package.module:function``, the request on stdin."""

import importlib
import json
import os
import sys

from tuning.process import answered


def main() -> int:
    """Read the request, call the function, write its answer."""
    sys.path.insert(0, os.getcwd())
    module, _, name = sys.argv[1].partition(":")
    answered(getattr(importlib.import_module(module), name), json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
