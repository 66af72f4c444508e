"""Header names that belong to the router: removed from what clients and actors send, never believed."""

from __future__ import annotations

from atenet.router.resources.names import Resource, type_url

__all__ = ["early_header_mutation", "ignored_upgrades", "strip_internal", "upstream_filters"]

_MUTATION = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
_EARLY = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"

_INTERNAL = [{"prefix": "x-ate-"}]
# What the router alone says in an answer.
_OURS = [{"exact": "ate-reason"}, {"exact": "ate-target-actor"}]
# Who speaks for whom is said before the body or not at all.
_CLIENT_CERT = {"exact": "x-forwarded-client-cert"}
# Envoy takes orders (retries, timeouts) from x-envoy- fields; the proxy- ones belong to the client's hop.
_FROM_CLIENTS = [
    *_INTERNAL,
    {"prefix": "x-envoy-"},
    {"exact": "ate-reason"},
    {"exact": "proxy-authorization"},
    {"exact": "proxy-authenticate"},
]

# An actor's own hop.
_HOP = [{"exact": "keep-alive"}, {"exact": "proxy-authenticate"}, {"exact": "proxy-connection"}]

_WEBSOCKET = "websocket"

# Envoy takes away what `Connection` lists only from requests. What frames the answer stays, listed or not.
_LISTED_BY_ACTORS = """
local kept = {close = true, ["keep-alive"] = true, upgrade = true, connection = true,
              ["content-length"] = true, ["transfer-encoding"] = true}
function envoy_on_response(handle)
  local headers = handle:headers()
  local listed = headers:get("connection")
  if listed == nil then return end
  for name in string.gmatch(string.lower(listed), "[^%s,]+") do
    if not kept[name] and string.sub(name, 1, 1) ~= ":" then headers:remove(name) end
  end
end
"""


def early_header_mutation() -> list[Resource]:
    """Runs before anything reads the request, tracing and routing included."""
    return [
        {
            "name": "envoy.http.early_header_mutation.header_mutation",
            "typed_config": {"@type": type_url(_EARLY), "mutations": _removals(_FROM_CLIENTS)},
        }
    ]


def strip_internal() -> Resource:
    """Runs on every answer, refusals too: some of Envoy's own are made from an actor's."""
    return _mutation({"response_mutations": _removals(_INTERNAL)})


def upstream_filters() -> list[Resource]:
    """Runs on answers of actors and origins only, so that our own refusals keep their reason."""
    codec = "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"
    mutations = {
        "response_mutations": _removals([*_OURS, *_HOP]),
        "response_trailers_mutations": _removals([*_INTERNAL, *_OURS]),
        "request_trailers_mutations": _removals([*_FROM_CLIENTS, *_OURS, _CLIENT_CERT]),
    }
    return [
        _remove_listed(),
        _mutation(mutations),
        {"name": "envoy.filters.http.upstream_codec", "typed_config": {"@type": type_url(codec)}},
    ]


def ignored_upgrades() -> list[Resource]:
    """Matches every upgrade token but `websocket`: such a request is served as an ordinary one.

    Envoy's matchers cannot say "not", so this spells out the ways to differ: another length, or another letter at
    one place.
    """
    length = len(_WEBSOCKET)
    patterns = [f".{{0,{length - 1}}}", f".{{{length + 1},}}"]
    for at, letter in enumerate(_WEBSOCKET):
        patterns.append(f".{{{at}}}[^{letter}{letter.upper()}].{{{length - at - 1}}}")
    return [{"safe_regex": {"regex": pattern}} for pattern in patterns]


def _mutation(mutations: Resource) -> Resource:
    return {
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {"@type": type_url(_MUTATION), "mutations": mutations},
    }


def _remove_listed() -> Resource:
    lua = "envoy.extensions.filters.http.lua.v3.Lua"
    code = {"inline_string": _LISTED_BY_ACTORS}
    return {
        "name": "envoy.filters.http.lua",
        "typed_config": {"@type": type_url(lua), "default_source_code": code},
    }


def _removals(matchers: list[Resource]) -> list[Resource]:
    return [{"remove_on_match": {"key_matcher": matcher}} for matcher in matchers]
