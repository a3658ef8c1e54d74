"""A server on this machine that keeps what it is sent and answers as it is told."""

import http.server
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Listening:
    """What came in, as (path, headers, body); `statuses` are given in turn, the last one from then on."""

    port: int = 0
    statuses: list = field(default_factory=lambda: [200])
    headers: dict = field(default_factory=dict)
    received: list = field(default_factory=list)
    before: object = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def bodies(self):
        return [body for _, _, body in self.received]


@contextmanager
def listening(context=None):
    told = Listening()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.received.append((self.path, dict(self.headers), body))
            if told.before:
                told.before()
            status = told.statuses.pop(0) if len(told.statuses) > 1 else told.statuses[0]
            self.send_response(status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = False
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
