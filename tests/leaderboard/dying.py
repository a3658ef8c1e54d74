"""The web application, but one request can ask its process to die between the commit and the answer."""

import os
import signal

from leaderboard.wsgi import application as whole


def application(environ, start_response):
    answer = whole(environ, start_response)
    if environ.get("HTTP_X_DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
