"""One HTTP POST to an address that a stranger chose, so that it reaches nothing but a public server.

Every address that the host's name stands for is checked, and one that was checked is connected to: a name
that means another address a moment later changes nothing. The certificate is verified for the name. Redirects
are not followed, proxies of the environment not used. All of it, the name's look-up included, ends within 5
seconds; of the answer the head alone is read, at most 64 KiB, and only its status is kept.
"""

import http.client
import io
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from leaderboard.errors import Refusal

SECONDS = 5.0
MAX_READ = 64 * 1024
PIECE = 16 * 1024

# The special-purpose registries of IANA (RFC 6890 and its successors), with multicast and what is reserved.
NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network, and unspecified
            "10.0.0.0/8",
            "100.64.0.0/10",  # carriers' NAT
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local, with the metadata of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",
        ),
    )
)
# Mapped and translated IPv4 (::ffff:0:0/96, 64:ff9b::/96), local and multicast addresses all lie outside.
UNICAST = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC_6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocols, among them Teredo
            "2001:db8::/32",
            "2002::/16",  # 6to4, which holds an IPv4 address
            "3fff::/20",
        ),
    )
)

NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # as the last part of a host: then all of it is an IPv4 address

SocketAddress = tuple[socket.AddressFamily, tuple[Any, ...]]


class AddressRefused(Refusal):
    message = "Webhooks cannot use this address."


class NotDelivered(Exception):
    """There was no answer; the message says why."""


@dataclass(frozen=True)
class PostTarget:
    """Where a URL leads: the host as a name of ASCII letters, its port, and what is asked for there."""

    is_encrypted: bool
    host: str
    port: int
    host_header: str
    path: str


def target_of(url: str) -> PostTarget:
    """Read a URL; refuse one that no webhook may have, whatever its name stands for."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError as error:
        raise AddressRefused(f"This URL cannot be read: {error}.") from error
    if reason := _fault(parts, url, host):
        raise AddressRefused(reason)
    shown = f"[{host}]" if ":" in host else host
    return PostTarget(
        is_encrypted=parts.scheme == "https",
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        host_header=shown if port is None else f"{shown}:{port}",
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
    )


def _fault(parts: SplitResult, url: str, host: str) -> str:
    schemes = ("https", "http") if settings.WEBHOOKS_MAY_BE_PLAIN else ("https",)
    if parts.scheme not in schemes:
        return f"A webhook's URL begins with {' or '.join(f'{scheme}://' for scheme in schemes)}."
    if not parts.hostname:
        return "A webhook's URL names a host."
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "A webhook's URL holds no account, password or fragment."
    if not (url.isascii() and url.isprintable() and " " not in url):
        return "A webhook's URL is spelled in printable ASCII; other characters are written as %xx."
    if parts.port == 0:
        return "A webhook's port is from 1 to 65535."
    if _is_disguised(host):
        return f"{host} is a number; write an IPv4 address with four numbers from 0 to 255, as 192.0.2.1."
    return ""


def _is_disguised(host: str) -> bool:
    """Whether a resolver may read an IPv4 address in what is not spelled as one: 2130706433, 0x7f.1."""
    if not NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return False
    try:
        ipaddress.ip_address(host)  # one of IPv6 may end as one of IPv4
    except ValueError:
        return True
    return False


def is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in NOT_PUBLIC)
    return ip in UNICAST and not any(ip in network for network in NOT_PUBLIC_6)


def check(url: str) -> None:
    """Refuse a URL that no webhook may have, or whose host has no public address now; nothing is sent."""
    target = target_of(url)
    try:
        _look_up(target, Deadline(SECONDS))
    except TimeoutError:
        raise AddressRefused(f"{target.host} was not looked up within {SECONDS:g} s. Try again.") from None
    except NotDelivered as error:
        why = str(error).removeprefix("the host ")
        raise AddressRefused(f"{target.host} {why}. Check the name, or add the webhook later.") from None


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.end = monotonic() + seconds

    def left(self) -> float:
        """Seconds, or the end of it."""
        left = self.end - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float = SECONDS) -> int:
    """Send the body and return the status of the answer.

    Raises AddressRefused: the URL, or an address of its host, is not one that webhooks may have.
    Raises NotDelivered: there was no answer.
    """
    target, deadline = target_of(url), Deadline(seconds)
    try:
        with (
            _connect(_look_up(target, deadline), deadline) as plain,
            _encrypt(target, plain, deadline) as connection,
        ):
            return _post(target, body, headers, BoundedStream(connection, deadline))
    except TimeoutError as error:
        raise NotDelivered(f"no answer within {seconds:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise NotDelivered(f"the certificate is not valid: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise NotDelivered(f"no encrypted connection: {error.reason}") from error
    except http.client.HTTPException as error:
        raise NotDelivered(f"the answer is not HTTP: {type(error).__name__}") from error
    except OSError as error:
        raise NotDelivered(f"no connection: {error.strerror or type(error).__name__}") from error


def _look_up(target: PostTarget, deadline: Deadline) -> list[SocketAddress]:
    """Return the addresses of the host, each of them checked.

    The system's resolver knows no time-out, so that it works on a thread of its own, which is left to itself
    where it takes too long.
    """
    answer: list[list[SocketAddress] | OSError] = []

    def look() -> None:
        try:
            listed = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
            answer.append([(family, address) for family, _, _, _, address in listed])
        except OSError as error:
            answer.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not answer:
        raise TimeoutError
    if isinstance(answer[0], OSError):
        raise NotDelivered(f"the host has no address: {answer[0].strerror}")
    for _, (address, *_) in answer[0]:
        if not settings.WEBHOOKS_MAY_BE_PRIVATE and not is_public(str(address)):
            hint = "For an address of your own network set WEBHOOKS_MAY_BE_PRIVATE=on."
            raise AddressRefused(f"{address} is not a public address. {hint}")
    return answer[0]


def _connect(addresses: list[SocketAddress], deadline: Deadline) -> socket.socket:
    """Connect to the first of these addresses that takes it; each has its share of the time left."""
    refused: OSError = OSError("the host has no address")
    for i, (family, address) in enumerate(addresses):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left() / (len(addresses) - i))
            connection.connect(address)
        except OSError as error:
            connection.close()
            refused = error
        else:
            return connection
    raise refused


def _encrypt(target: PostTarget, connection: socket.socket, deadline: Deadline) -> socket.socket:
    if not target.is_encrypted:
        return connection
    connection.settimeout(deadline.left())
    return _context().wrap_socket(connection, server_hostname=target.host)


_context = lru_cache(maxsize=1)(ssl.create_default_context)


class BoundedStream(io.RawIOBase):
    """What `http.client` takes for a socket: it ends with the deadline, and after so many bytes."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.connection, self.deadline, self.left = connection, deadline, MAX_READ

    def readable(self) -> bool:
        return True

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def sendall(self, content: bytes) -> None:
        for start in range(0, len(content), PIECE):
            self.connection.settimeout(self.deadline.left())
            self.connection.sendall(content[start : start + PIECE])

    def readinto(self, buffer: Any) -> int:
        if not self.left:
            return 0  # recv_into would take 0 for the whole buffer
        self.connection.settimeout(self.deadline.left())
        n = self.connection.recv_into(buffer, min(len(buffer), self.left))
        self.left -= n
        return n


def _post(target: PostTarget, body: bytes, headers: Mapping[str, str], stream: BoundedStream) -> int:
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = cast(socket.socket, stream)
    connection.request("POST", target.path, body, {**headers, "Host": target.host_header})
    answer = http.client.HTTPResponse(cast(socket.socket, stream), method="POST")
    answer.begin()
    return answer.status
