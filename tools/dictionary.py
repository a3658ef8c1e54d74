"""Write docs/data-dictionary.md from what the columns say of themselves: `python tools/dictionary.py`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")

import django  # noqa: E402 - the path comes first

django.setup()
from leaderboard.boards.export import page  # noqa: E402 - of an application that is set up

(ROOT / "docs" / "data-dictionary.md").write_text(page(), encoding="utf-8")
