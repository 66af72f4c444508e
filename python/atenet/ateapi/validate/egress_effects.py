"""What an egress rule does to a request: headers replaced by credentials."""

from __future__ import annotations

import re

from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import fields
from atenet.ateapi.validate.egress_names import is_dns_name
from atenet.proto import ateapi_pb2 as pb

__all__ = ["replace_headers"]

_MAX_HEADERS = 16
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_PREFIX = re.compile(r"[\x20-\x7e]{0,128}")
# RFC 3986's pchar without percent-escapes.
_SEGMENT = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@-]+")
_SCHEME = "ate-secret://"
_MAX_URI = 2048
# Who the request is for, how it is framed, and the hop's own affairs: never a credential's place.
_PROTECTED = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te"),
        *("trailer", "upgrade", "expect", "http2-settings", "proxy-connection"),
        *("proxy-authenticate", "ate-target-actor", "ate-reason"),
    }
)
_PROTECTED_PREFIXES = ("x-ate-", "proxy-")


def replace_headers(field: str, effects: pb.HttpRuleEffects) -> None:
    """Raises InvalidArgument."""
    given = effects.replace_headers
    if len(given) > _MAX_HEADERS:
        raise invalid(field, f"has {len(given)} headers; at most {_MAX_HEADERS}")
    seen: set[str] = set()
    for i, header in enumerate(given):
        at = f"{field}[{i}]"
        _header_name(f"{at}.header", header.header)
        if header.header.lower() in seen:
            raise invalid(f"{at}.header", f"{header.header!r} is there twice")
        seen.add(header.header.lower())
        if _PREFIX.fullmatch(header.prefix) is None:
            raise invalid(f"{at}.prefix", "must be at most 128 printable ASCII characters")
        if bool(header.credential_uri) == header.HasField("actor_jwt"):
            raise invalid(at, "set exactly one of credential_uri and actor_jwt")
        if header.credential_uri:
            _credential_uri(f"{at}.credential_uri", header.credential_uri)
        else:
            _actor_jwt(f"{at}.actor_jwt", header.actor_jwt)


def _header_name(field: str, name: str) -> None:
    if _TOKEN.fullmatch(name) is None:
        raise invalid(field, f"{name[:200]!r} is not a header's name")
    lower = name.lower()
    if lower in _PROTECTED or lower.startswith(_PROTECTED_PREFIXES):
        raise invalid(field, f"{name!r} cannot be replaced: the proxies rely on it")


def _credential_uri(field: str, uri: str) -> None:
    provider_class, _, path = uri.removeprefix(_SCHEME).partition("/")
    segments = path.split("/")
    good = (
        len(uri) <= _MAX_URI
        and uri.startswith(_SCHEME)
        and is_dns_name(provider_class)
        and len(segments) >= 2
        and all(_SEGMENT.fullmatch(s) and s not in (".", "..") for s in segments)
    )
    if not good:
        # Not repeated: people paste secrets where their names belong.
        raise invalid(
            field,
            f"must be {_SCHEME}<provider class>/<provider name>/<what>, the class a DNS name,"
            " without port, user, query, fragment, percent-escapes or empty parts",
        )


def _actor_jwt(field: str, source: pb.ActorJWTSource) -> None:
    fields.audiences(f"{field}.audiences", source.audiences)
    fields.token_lifetime(f"{field}.expiration_seconds", source.expiration_seconds)
