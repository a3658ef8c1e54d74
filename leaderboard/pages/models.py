"""What the pages keep: answers that were rendered once. Nothing here is lost if it goes."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class RenderedPage(models.Model):
    """One page as it is sent, under the digest of all that it was made from; see `pages.caching`."""

    key = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField(help_text="Compressed by gzip.")
    content_type = models.CharField(max_length=100)
    rendered_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar = [models.Index(fields=["rendered_at"], name="rendered_page_by_age")]

    def __str__(self) -> str:
        return self.key
