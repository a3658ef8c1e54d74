"""The text of a token: `bst_`, 32 random bytes in base 62, and their CRC32 in base 62.

The checksum lets a scanner or a client recognise a token, or a typing error, without asking the service.
The first letters are the public id under which the token is looked up; they tell 71 of 256 bits.
"""

import hashlib
import secrets
import string
import zlib

ALPHABET = string.digits + string.ascii_letters
PREFIX = "bst_"
N_RANDOM = 43  # 62^43 > 2^256
N_CHECK = 6  # 62^6 > 2^32
N_PUBLIC = 12


class MalformedTokenError(ValueError):
    def __init__(self) -> None:
        super().__init__(
            "This is not a Bandstand token: one begins with bst_ and ends with a checksum that fits."
        )


def mint() -> str:
    random = _base62(int.from_bytes(secrets.token_bytes(32)), N_RANDOM)
    return PREFIX + random + _checksum(random)


def parse(text: str) -> tuple[str, bytes]:
    """Return the public id and the SHA-256 by which a token is kept, or raise MalformedTokenError."""
    body = text.removeprefix(PREFIX)
    random, end = body[:N_RANDOM], body[N_RANDOM:]
    if body == text or not body.isascii() or len(end) != N_CHECK or end != _checksum(random):
        raise MalformedTokenError
    return random[:N_PUBLIC], hashlib.sha256(text.encode()).digest()


def _checksum(random: str) -> str:
    return _base62(zlib.crc32(random.encode()), N_CHECK)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
