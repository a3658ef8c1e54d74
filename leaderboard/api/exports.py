"""Downloads: outcomes as streams out of one snapshot, boards as files, and what their columns hold.

A stream that breaks resets its connection, so that no prefix of a file passes for the whole.
"""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api.errors import MEDIA_TYPE, RETRY_AFTER, problem
from leaderboard.api.permissions import Anyone, token_in
from leaderboard.api.views import benchmark_for
from leaderboard.boards.export import FORMATS as BOARD_FORMATS
from leaderboard.boards.models import Board
from leaderboard.boards.presentation import shown_standings
from leaderboard.boards.queries import board_numbered, latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.versions import versions_file
from leaderboard.submissions.export import FORMATS, Outcomes, Snapshot

AT_ONCE = 2  # in this process: each holds a connection, and most of a thread
places = BoundedSemaphore(AT_ONCE)
RESET = struct.pack("ii", 1, 0)  # linger on, for no time: closing sends RST
