"""Where a dataplane is known to differ from the table, test by test: the only place that says so.

Each is run and must fail (a strict xfail): when the program that carries the bytes changes its ways, the suite says
so, and the entry and its line in docs/envoy.md go. docs/parity.md is made from here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """`test` is the function's name; `params`: the ids of the parameters that differ, all if empty."""

    dataplane: str
    test: str
    reason: str
    params: tuple[str, ...] = ()
    # It shows itself by waiting for ever: the test is given up after a few seconds.
    waits: bool = False

    def names(self) -> set[str]:
        """The names of the tests as pytest has them."""
        ids = [f"{self.dataplane}-{param}" for param in self.params] or [self.dataplane]
        return {f"{self.test}[{each}]" for each in ids}


def _envoy(test: str, reason: str, *params: str, waits: bool = False) -> Difference:
    return Difference("envoy", test, reason, params, waits)


_LENIENT = "Envoy's HTTP/1 parser mends it: the actor sees one clean request"
_LOOKS_ALIKE = (
    "503 worker-unreachable: Envoy cannot tell an actor that broke off from a worker out of reach"
)
_CLOSE_DELIMITED = "a body that only the end of the connection ends is ended cleanly by a reset too"

_UPLOAD = "an upload ends when the actor has answered in full"

_NO_RESET = "the tunnel's connection is ended, not reset: Envoy never resets an HTTP connection"

DIFFERENCES = (
    _envoy(
        "test_a_trailing_tab_in_the_value_is_not_trimmed",
        "white space behind a field's value is no part of it, and dropped before anything of ours sees it",
    ),
    _envoy(
        "test_an_ambiguous_request_is_400_and_the_connection_closes",
        _LENIENT,
        "folded line",
        "folded with a tab",
        "bare CR in a value",
        "bare LF ends a line",
    ),
    _envoy(
        "test_a_malformed_start_line_is_refused",
        _LENIENT,
        "HTTP/0.9",
        "HTTP/2.0",
        "two spaces",
        "tab for a space",
        "bare LF",
    ),
    _envoy(
        "test_an_ambiguous_answer_of_an_actor_is_a_502",
        "Envoy's HTTP/1 parser drops the bare CR",
        "bare CR in a value",
    ),
    _envoy(
        "test_an_idle_inner_connection_on_a_leaving_worker_connection_is_not_used",
        "a worker's GOAWAY does not reach idle connections inside its tunnels; they are used on, and close by "
        "--actor-idle-timeout",
    ),
    _envoy("test_a_get_is_sent_twice_at_most", _LOOKS_ALIKE),
    _envoy(
        "test_a_request_that_broke_before_any_answer_is_not_repeated", _LOOKS_ALIKE, "POST", "PATCH"
    ),
    _envoy("test_an_actor_that_ends_without_a_word_is_a_502", _LOOKS_ALIKE),
    _envoy("test_a_port_where_nothing_listens_is_a_502", _LOOKS_ALIKE),
    _envoy(
        "test_a_client_that_waits_for_100_is_let_through_to_a_sleeping_actor",
        "100 Continue is the actor's own; where the actor sends none, the client waits until its own limit",
        "the actor says nothing",
        waits=True,
    ),
    _envoy("test_an_answer_before_the_end_of_the_upload_comes_through", _UPLOAD),
    _envoy(
        "test_an_upload_runs_on_after_the_actor_answered_and_closed_its_side",
        _UPLOAD,
        waits=True,
    ),
    _envoy(
        "test_an_actors_reset_is_never_a_clean_end",
        _CLOSE_DELIMITED,
        "close-delimited",
        waits=True,
    ),
    _envoy("test_an_actors_reset_resets_the_http2_stream", _CLOSE_DELIMITED),
    _envoy("test_any_2xx_opens_the_tunnel", "only 200 does"),
    _envoy(
        "test_a_worker_that_is_not_exactly_the_named_one_gets_no_tunnel",
        "a worker may carry a further URI beside the one that the assignment named",
        "two ids",
    ),
    _envoy(
        "test_bytes_behind_an_upgrade_that_was_not_taken_are_a_new_request",
        "an actor's 2xx or 3xx to an upgrade is a 502, and the connection closes",
    ),
    _envoy(
        "test_a_certificate_that_is_no_tunnels_fails_in_the_handshake",
        "an authority's certificate with a tunnel's name passes the handshake and is told 403",
        "authority",
    ),
    _envoy(
        "test_an_absolute_target_and_a_host_that_differ_are_400",
        "the target's host alone counts (RFC 9112, 3.2.2): judged, dialled, sent and logged",
        "allowed",
        "denied",
    ),
    _envoy(
        "test_every_place_reads_every_spelling_alike",
        "a user before the host of an absolute target is dropped, and the host alone is judged",
        "in_an_absolute_target",
    ),
    _envoy("test_anything_else_is_reset", _NO_RESET, "ssh", "zeros", "old tls"),
    _envoy(
        "test_a_client_that_waits_for_the_server_is_reset_after_the_sniff_limit",
        _NO_RESET,
        "nothing",
        "half a word",
    ),
    _envoy(
        "test_an_origin_that_is_down_is_another_alert_than_a_denial",
        "TLS that passes through to an origin out of reach is ended without an alert",
    ),
    _envoy(
        "test_an_origin_without_http2_is_not_spoken_to_in_anything_less",
        "gRPC to an origin that did not agree to HTTP/2 in the handshake is sent as HTTP/2 all the same, and fails",
    ),
)
