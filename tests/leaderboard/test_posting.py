"""One guarded POST: what it reaches, and how long and how much it takes."""

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from contextlib import contextmanager

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from leaderboard.operations import posting
from leaderboard.operations.posting import AddressRefused, NotDelivered, is_public, post, target_of
from tests.leaderboard.listening import listening

PUBLIC = "93.184.215.14"


@pytest.fixture
def private(settings):
    settings.WEBHOOKS_MAY_BE_PRIVATE = settings.WEBHOOKS_MAY_BE_PLAIN = True


def resolved(monkeypatch, *answers):
    """Let every name stand for these addresses, one list a look-up; return the names looked up."""
    asked, left = [], list(answers)

    def look(host, port, **_):
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        family = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (family[ipaddress.ip_address(one).version], socket.SOCK_STREAM, 6, "", (one, port))
            for one in found
        ]

    monkeypatch.setattr(posting.socket, "getaddrinfo", look)
    return asked


@pytest.fixture
def connects(monkeypatch):
    """Addresses that a connection was tried to; none is made."""
    tried = []

    class Refusing(socket.socket):
        def connect(self, address):
            tried.append(address)
            raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(posting.socket, "socket", Refusing)
    return tried


# ------------------------------------------------------------------------------------------- which addresses

NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1
    198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:93.184.215.14 64:ff9b::a00:1 64:ff9b:1::1 100::1
    2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2002:a00:1:: 2002:7f00:1::1 3fff::1 fc00::1
    fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1 5f00::1
"""
SEEN = """
    93.184.215.14 1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.0
    198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888
"""


@pytest.mark.parametrize("address", NOT_PUBLIC.split())
def test_what_is_not_public_is_refused_before_a_connection(monkeypatch, connects, address):
    resolved(monkeypatch, [address])
    with pytest.raises(AddressRefused, match="is not a public address"):
        post("https://hooks.example/", b"{}", {})
    assert connects == []


@pytest.mark.parametrize("address", SEEN.split())
def test_what_is_public_is_connected_to(monkeypatch, connects, address):
    resolved(monkeypatch, [address])
    with pytest.raises(NotDelivered, match="Connection refused"):
        post("https://hooks.example/", b"{}", {})
    assert [one[0] for one in connects] == [address]


@pytest.mark.parametrize("address", (NOT_PUBLIC + SEEN).split())
def test_nothing_is_public_that_python_calls_private(address):
    """Against the tables of the standard library, which this machine's version may have older."""
    found = ipaddress.ip_address(address)
    private = found.is_private or found.is_multicast or found.is_loopback or found.is_reserved
    assert not (is_public(address) and private)
    assert is_public(address) == (address in SEEN.split())


def test_one_private_address_among_public_ones_is_enough(monkeypatch, connects):
    resolved(monkeypatch, [PUBLIC, "10.0.0.1"])
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        post("https://hooks.example/", b"{}", {})
    assert connects == []


def test_a_name_that_changes_its_address_cannot_rebind(monkeypatch, connects):
    """It is looked up once, and what was checked is connected to."""
    asked = resolved(monkeypatch, [PUBLIC], ["127.0.0.1"])
    with pytest.raises(NotDelivered):
        post("https://hooks.example:8443/", b"{}", {})
    assert (asked, connects) == (["hooks.example"], [(PUBLIC, 8443)])


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"])
def test_a_private_address_is_called_so(address):
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused, match="is not a public address"):
        post(f"https://{host}/", b"{}", {})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "0"])
def test_this_machine_is_refused_however_it_is_spelled(connects, host):
    with pytest.raises((AddressRefused, NotDelivered)):
        post(f"https://{host}/", b"{}", {})
    assert connects == []


# As the C library reads them: 127.0.0.1, 0.0.0.0 and 8.8.8.8; and what is no address at all.
DISGUISED = (
    "2130706433 0x7f000001 0x7F.1 0x7f.0.0.1 127.1 127.0.1 0177.0.0.1 017700000001 127.0.0.01 127.0.0.1. 0 0x"
    " 00 8.8.2056 134744072 010.8.8.8 256.256.256.256 1.2.3.4.5 hooks.example.1 hooks.0x7f"
    " １２７.0.0.1 127。0。0。1 ①.1.1.1"
)


@pytest.mark.parametrize("host", ["1password.example", "0x7f.example", "8.8.8.8", "a1", "3com", "1.example."])
def test_a_name_may_hold_digits(host):
    assert target_of(f"https://{host}/").host == host


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "//hooks.example/",
        "https://",
        "https:///path",
        "https://user:secret@hooks.example/",
        "https://hooks.example/#part",
        "https://hooks.example/a b",
        "https://hooks.example/\r\nHost: other",
        "https://hooks.example/é",
        "https://hooks.example:99999/",
        f"https://{'x' * 64}.example/",
        "https://[::1/",
        "https://hooks.example:0/",
        *(f"https://{host}/" for host in DISGUISED.split()),
    ],
)
def test_what_is_no_address_of_a_webhook(url):
    with pytest.raises(AddressRefused):
        target_of(url)


def test_plain_http_takes_a_setting(settings):
    settings.WEBHOOKS_MAY_BE_PLAIN = True
    assert target_of("http://hooks.example/a?b=c").path == "/a?b=c"
    with pytest.raises(AddressRefused, match="https:// or http://"):
        target_of("ftp://hooks.example/")


# ------------------------------------------------------------------------------------------ what is exchanged


def test_what_arrives(private):
    with listening() as server:
        assert post(server.url + "?a=1", b'{"a": 1}', {"Bandstand-Event": "x"}) == 200
    ((path, headers, body),) = server.received
    assert (path, body) == ("/hook?a=1", b'{"a": 1}')
    assert headers["Host"] == f"127.0.0.1:{server.port}"
    assert headers["Bandstand-Event"] == "x"


def test_a_large_body_arrives_whole(private):
    body = b"x" * 1_000_003
    with listening() as server:
        assert post(server.url, body, {}) == 200
    assert server.bodies == [body]


def test_a_redirect_is_not_followed(private):
    with listening() as other, listening() as server:
        server.statuses, server.headers = [302], {"Location": other.url}
        assert post(server.url, b"{}", {}) == 302
    assert len(server.received) == 1
    assert other.received == []


def test_a_proxy_of_the_environment_is_not_used(private, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with listening() as server:
        assert post(server.url, b"{}", {}) == 200


@contextmanager
def speaking(speak):
    """A server that speaks as it likes to one that asks."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.settimeout(10)
                try:
                    speak(connection, over)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):  # closed with something unread, it would be reset
                        pass
                except OSError:  # the other has gone, as it should
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        over.set()
        thread.join()


def silent(connection, over):
    """Neither read nor say anything as long as the test lasts."""
    over.wait(10)


def drip(content, pause):
    def speak(connection, over):
        for byte in content:
            connection.sendall(bytes([byte]))
            time.sleep(pause)

    return speak


@pytest.mark.parametrize(
    "speak",
    [
        silent,
        pytest.param(drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100, 0.1), id="a byte at a time"),
        pytest.param(drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.1), id="for ever about to go on"),
    ],
)
def test_a_slow_answer_ends_with_the_time_allowed(private, speak):
    begun = time.monotonic()
    with speaking(speak) as url:
        with pytest.raises(NotDelivered, match=r"no answer within 0.5 s"):
            post(url, b"{}", {}, seconds=0.5)
        assert time.monotonic() - begun < 8


def test_a_slow_reader_ends_with_the_time_allowed(private):
    begun = time.monotonic()
    with speaking(silent) as url:
        with pytest.raises(NotDelivered, match=r"no answer within 0.5 s"):
            post(url, b"x" * 50_000_000, {}, seconds=0.5)
        assert time.monotonic() - begun < 8


def test_a_slow_resolver_ends_with_the_time_allowed(monkeypatch, connects):
    monkeypatch.setattr(posting.socket, "getaddrinfo", lambda *_, **__: time.sleep(10) or [])
    begun = time.monotonic()
    with pytest.raises(NotDelivered, match=r"no answer within 0.5 s"):
        post("https://hooks.example/", b"{}", {}, seconds=0.5)
    assert time.monotonic() - begun < 8
    assert connects == []


def test_it_is_five_seconds_where_nothing_else_is_said():
    assert posting.SECONDS == 5
    assert post.__kwdefaults__ == {"seconds": 5}


def test_of_a_large_answer_64_kib_are_read_at_most(private):
    sent = []

    def speak(connection, over):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(10_000):
            sent.append(connection.send(b"x" * 65536))

    with speaking(speak) as url:
        assert post(url, b"{}", {}) == 200
    assert sum(sent) < 100_000_000  # the connection is closed at once, with the rest unread


def test_of_endless_heads_64_kib_are_read_at_most(private, monkeypatch):
    streams = []
    whole = posting.BoundedStream.__init__

    def kept(self, *arguments):
        whole(self, *arguments)
        streams.append(self)

    monkeypatch.setattr(posting.BoundedStream, "__init__", kept)

    def speak(connection, over):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"Y: " + b"z" * 10_000_000)

    with speaking(speak) as url:
        assert post(url, b"{}", {}) == 200  # the status stood in what was read
    assert streams[0].left == 0


@pytest.mark.parametrize("content", [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"\0" * 100])
def test_what_is_not_http_is_no_answer(private, content):
    def speak(connection, over):
        connection.recv(65536)
        connection.sendall(content)

    with speaking(speak) as url, pytest.raises(NotDelivered, match="not HTTP"):
        post(url, b"{}", {})


def test_nobody_listens(private):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotDelivered, match="no connection: Connection refused"):
        post(f"http://127.0.0.1:{port}/", b"{}", {})


def test_the_second_address_is_tried_where_the_first_refuses(private, monkeypatch):
    with listening() as server:
        resolved(monkeypatch, ["::1", "127.0.0.1"])
        assert post(f"http://hooks.example:{server.port}/", b"{}", {}) == 200
    assert server.received[0][1]["Host"] == f"hooks.example:{server.port}"


# ------------------------------------------------------------------------------------------------------- TLS


def certified(folder, name):
    """A certificate for a name, signed by itself, and the context of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return path, context


@pytest.fixture
def trusted(tmp_path, private, monkeypatch):
    """A server whose certificate for hooks.example is trusted, and the names that it is asked for."""
    path, context = certified(tmp_path, "hooks.example")
    names = []
    context.sni_callback = lambda _, name, __: names.append(name)
    client = ssl.create_default_context(cafile=str(path))
    monkeypatch.setattr(posting, "_context", lambda: client)
    return context, names


def test_the_certificate_is_verified_for_the_name_and_the_name_is_sent(trusted, monkeypatch):
    context, names = trusted
    resolved(monkeypatch, ["127.0.0.1"])
    with listening(context) as server:
        assert post(f"https://hooks.example:{server.port}/", b"{}", {}) == 200
    assert names == ["hooks.example"]
    assert server.received[0][1]["Host"] == f"hooks.example:{server.port}"


def test_a_certificate_for_another_name_is_refused(trusted, monkeypatch):
    context, _ = trusted
    resolved(monkeypatch, ["127.0.0.1"])
    with listening(context) as server, pytest.raises(NotDelivered, match="certificate is not valid"):
        post(f"https://other.example:{server.port}/", b"{}", {})
    assert server.received == []


def test_a_certificate_that_nobody_signed_is_refused(tmp_path, private, monkeypatch):
    _, context = certified(tmp_path, "hooks.example")
    resolved(monkeypatch, ["127.0.0.1"])
    with listening(context) as server, pytest.raises(NotDelivered, match="certificate is not valid"):
        post(f"https://hooks.example:{server.port}/", b"{}", {})
    assert server.received == []


def test_a_server_that_stalls_the_encryption_ends_with_the_time_allowed(private):
    begun = time.monotonic()
    with speaking(silent) as url:
        with pytest.raises(NotDelivered, match=r"no answer within 0.5 s"):
            post(url.replace("http://", "https://"), b"{}", {}, seconds=0.5)
        assert time.monotonic() - begun < 8
