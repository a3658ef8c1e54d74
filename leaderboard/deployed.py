"""What must hold before the service is put on the internet: refused at the start where it does not."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from django.core.exceptions import ImproperlyConfigured

SHORTEST_KEY, MIN_SIGNS = 50, 10
MAKE_KEY = "python -c 'import secrets; print(secrets.token_urlsafe(48))'"
SHORTEST_TOKEN = 20
KNOWN = ("insecure", "change", "secret", "example", "password")  # of keys that are copied from somewhere
SWITCH = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
HOST = re.compile(r"[\w.-]+|\[[0-9a-fA-F:.]+\]")

Network = IPv4Network | IPv6Network


def strong_key(key: str) -> str:
    """Return the SECRET_KEY, unless it could be guessed: it signs sessions and links that reset passwords."""
    why = (
        f"has {len(key)} characters"
        if len(key) < SHORTEST_KEY
        else f"has only {len(set(key))} different characters"
        if len(set(key)) < MIN_SIGNS
        else next((f'holds the word "{word}"' for word in KNOWN if word in key.lower()), "")
    )
    if why:
        raise ImproperlyConfigured(
            f"SECRET_KEY {why} and could be guessed; a good one has {SHORTEST_KEY} or more, at random: "
            f"{MAKE_KEY}"
        )
    return key


def named_hosts(hosts: list[str]) -> list[str]:
    """Return the ALLOWED_HOSTS, unless they are all hosts: links in mail are made from the one asked for."""
    if not all(HOST.fullmatch(host) for host in hosts):
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS names the hosts of this service, separated by commas: board.example; not *, "
            "no https:// and no port."
        )
    return hosts


def yes_or_no(name: str, text: str, *, default: bool) -> bool:
    """Read a switch; anything else would be off in silence."""
    if not text:
        return default
    if text.lower() not in SWITCH:
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be one of {', '.join(SWITCH)}.")
    return SWITCH[text.lower()]


def database(settings_found: dict[str, Any]) -> dict[str, Any]:
    if settings_found.get("ENGINE") != "django.db.backends.postgresql" or not settings_found.get("NAME"):
        raise ImproperlyConfigured("DATABASE_URL must be like postgres://user:password@host:5432/name.")
    return settings_found


def secret_token(name: str, token: str) -> str:
    if token and len(token) < SHORTEST_TOKEN:
        raise ImproperlyConfigured(f"{name} has {len(token)} characters; {SHORTEST_TOKEN} are the fewest.")
    return token


def networks(name: str, texts: list[str]) -> list[Network]:
    try:
        return [ip_network(text.strip()) for text in texts if text.strip()]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from None


def reachable_address(addresses: Iterable[str | int | tuple[str, int]]) -> str | None:
    """Name the first of gunicorn's addresses that other machines may reach: no Unix socket, no loopback."""
    for address in addresses:
        if isinstance(address, int):
            return f"the file descriptor {address}"
        if not isinstance(address, str) and not _is_loopback(address[0]):
            host, port = address
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
