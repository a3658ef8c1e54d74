"""Which estimates are held against full runs."""

from leaderboard.studies.staged_studies import published_of


def made(*stages):
    return None, [{"stage": stage, "score": 0.1 * k, "se": 0.01 * k} for k, stage in enumerate(stages, 1)]


def test_of_agents_that_were_stopped_those_that_were_drawn_or_asked_for_the_rest():
    decisions = {
        "drawn": made("running", "drawn"),
        "asked": made("stopped"),
        "by itself": made("running", "stopped"),
        "contender": made("running", "running"),
        "begun": made(),
    }
    found = published_of(decisions, sampled={"asked": 0.5, "contender": 0.5})
    assert found == {"drawn": (0.2, 0.02), "asked": (0.1, 0.01)}
