"""What every page of a benchmark begins with: who may see it, and how long the answer holds."""

from django.db.models import Exists, OuterRef
from django.http import Http404
from django.views.decorators.cache import cache_control

from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.models import Alert

for_all = cache_control(public=True, max_age=0, must_revalidate=True)


def visible(slug: str) -> Benchmark:
    """The benchmark as visitors see it, with `has_alerts`: whether a monitor ever said something.

    Raises
    ------
    Http404
        There is none, or none for visitors.
    """
    alerts = Alert.objects.filter(benchmark=OuterRef("pk"))
    found = visible_benchmarks(None).filter(slug=slug).annotate(has_alerts=Exists(alerts)).first()
    if found is None:
        raise Http404("There is no such benchmark.")
    return found
