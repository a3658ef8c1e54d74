"""The page on methods: every statistic in a plain sentence, then its formula and its source.

What a word means is told where it is defined (`words.LEGEND`, `validated.LEGEND`); formulas are those of the
modules named as their source. Pages link to the anchors: `/methods#rank-sets`.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.pages.access import for_all
from leaderboard.studies.answers import validated, words

TARGETS = {
    words.sentence(words.TARGETS[name].format(n="…"))[:-1]: meaning for name, meaning in words.COVERS.items()
}


@require_safe
@for_all
def methods(request: HttpRequest) -> HttpResponse:
    shown = {
        "zero": words.ZERO,
        "covers": words.COVERS,
        "targets": TARGETS,
        "marks": words.MARKS,
        "phases": {phase.replace("_", " "): meaning for phase, meaning in words.PHASES.items()},
        "protocols": {one.label: words.sentence(one.meaning) for one in validated.PROTOCOLS.values()},
        "figures": validated.LEGEND,
        "trust": {words.TRUST[level]: text for level, text in words.TRUST_MEANS.items()},
    }
    return render(request, "pages/methods.html", shown)
