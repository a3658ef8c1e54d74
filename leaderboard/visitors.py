"""From which address a request comes: told by the connection, or by the proxies in front that are known.

Each proxy appends whom it was asked by to X-Forwarded-For; what stands before the entries of known proxies
was written by the visitor, and is believed by nobody.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

IPV6_PREFIX = 64  # bits of an IPv6 address that one line has

Address = IPv4Address | IPv6Address


def address_of(request: HttpRequest) -> Address | None:
    """The visitor's address; None where it is not known.

    Without known proxies a request that names any is one of theirs, so that the connection tells nothing.
    """
    if not settings.PROXIES:
        return directly_from(request)
    forwarded = request.headers.get("X-Forwarded-For", "").split(",")
    return _read(forwarded[-settings.PROXIES]) if len(forwarded) >= settings.PROXIES else None


def directly_from(request: HttpRequest) -> Address | None:
    """The peer's address when no proxy forwarded the request; None when one did."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return None
    return _read(request.META.get("REMOTE_ADDR"))


def network_of(address: Address) -> str:
    """The IPv4 address, or the /64 network of an IPv6 address, as the key for rate limits."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)


def _read(text: str | None) -> Address | None:
    """The address; of IPv4 as such, also where a socket of IPv6 tells it."""
    try:
        address = ip_address((text or "").strip().removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
