"""The page of a replay tells what the report tells, and stands alone."""

import re

from leaderboard.terminal.replay_page import replay_page

BOARD = {"phase": "ongoing", "n": 12, "k": 40, "n_tasks_full": 1000, "rho": 0.987, "top5_overlap": 0.8}
REPORT = {
    "verdict": None,
    "agents": 14,
    "n_tasks_run": 800,
    "n_tasks_full": 1000,
    "saved_share": 0.2,
    "saved_usd": 1234.4,
    "pairs_correct": 0.963,
    "rho": 0.987,
    "top5_overlap": 0.8,
    "alerts": [
        {
            "monitor": "saturation",
            "level": "alert",
            "opened": "2025-03-01",
            "closed": None,
            "reason": "<b>half</b> of the subset is passed by nearly all",
            "closed_reason": "",
        }
    ],
    "reselections": [
        {
            "date": "2025-02-01",
            "variant": "hysteresis",
            "k": 44,
            "n_entering": 6,
            "n_leaving": 2,
            "reason": "saturation",
        }
    ],
    "boards": [
        BOARD | {"date": "2025-01-01", "k": None, "n_tasks_run": 1000, "pairs_correct": None, "rho": None},
        BOARD | {"date": "2025-03-01", "n_tasks_run": 800, "pairs_correct": 0.963},
    ],
}


def test_the_page_tells_the_report():
    page = replay_page(slug="toy", report=REPORT, command="manage.py replay toy history.csv")
    assert "20.0% of 1,000 runs of a task, worth $1,234, were spared, and the last board puts 96.3%" in page
    assert "manage.py replay toy history.csv" in page
    assert "<td>96.3%</td><td>0.987</td><td>80.0%</td>" in page
    assert "<td>none</td><td>0.0%</td><td>not measured</td><td>not measured</td>" in page
    assert "still open" in page
    assert "&lt;b&gt;half&lt;/b&gt;" in page
    assert page.count("<svg") == 2
    assert page.count('class="event s-ink"') == 2  # the reselection, in both
    assert re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)|<script", page) is None


def test_a_history_without_agreement_says_so():
    report = REPORT | {"pairs_correct": None, "saved_usd": None, "alerts": [], "reselections": []}
    page = replay_page(slug="toy", report=report | {"boards": REPORT["boards"][:1]}, command="…")
    assert "20.0% of 1,000 runs of a task were spared." in page
    assert page.count("<p>None.</p>") == 2
