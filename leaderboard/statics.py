"""Static files: addressed by a name with their hash, good for a year, and compressed where that helps."""

import gzip
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

HASH_LENGTH = 12
HASH = re.compile(rf"\.[0-9a-f]{{{HASH_LENGTH}}}(?=\.\w+$)")
A_YEAR = 365 * 24 * 3_600
COMPRESSED = re.compile(r"text/|application/(json|javascript)|image/svg")
MAX_KEPT = 64  # compressed files


class HashedNames(StaticFilesStorage):
    """`css/a.css` is addressed as `css/a.0123456789ab.css`; with STATIC_ROOT as it was collected."""

    def url(self, name: str | None) -> str:
        return super().url(name if name is None or settings.STATIC_ROOT else hashed_name(name))


@cache
def hashed_name(name: str) -> str:
    path = finders.find(name)
    if not path:
        return name
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{sha256(Path(path).read_bytes()).hexdigest()[:HASH_LENGTH]}.{suffix}"


class StaticFiles(WhiteNoiseMiddleware):
    """Serve a file under its own name and with any hash; only with its present hash it never changes."""

    FOREVER = A_YEAR

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_hashed = request.path_info.startswith(self.static_prefix) and HASH.search(request.path_info)
        if is_hashed and (found := self.find_file(request.path_info)):
            return self.serve(found, request)
        answer: HttpResponseBase = super().__call__(request)
        return answer

    def candidate_paths_for_url(self, url: str) -> Iterator[str]:
        yield from super().candidate_paths_for_url(HASH.sub("", url))

    def get_name_without_hash(self, filename: str) -> str:
        return HASH.sub("", filename)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = WhiteNoiseMiddleware.serve(static_file, request)
        if not COMPRESSED.match(response.get("Content-Type", "")):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))
        is_whole = request.method == "GET" and response.status_code == 200
        if not is_whole or "gzip" not in request.headers.get("Accept-Encoding", ""):
            return response
        content = _compressed(response.file_to_stream.name, response["Last-Modified"])  # type: ignore[attr-defined]
        response.close()
        headers = dict(response.items()) | {"Content-Encoding": "gzip", "Content-Length": f"{len(content)}"}
        return HttpResponse(content, headers=headers)


@lru_cache(maxsize=MAX_KEPT)
def _compressed(path: str, changed: str) -> bytes:
    """The file, compressed once for each time that it changed."""
    return gzip.compress(Path(path).read_bytes(), mtime=0)
