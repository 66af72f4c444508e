"""Envoy's admin API: what it is asked and told. Blocking, with short limits; loops call it in a thread."""

from __future__ import annotations

import http.client
import json

from atenet.address import Address
from atenet.errors import AteError

__all__ = ["EnvoyAdmin", "parse_stats"]

_LIMIT_SECONDS = 2.0


class EnvoyAdmin:
    """Raises AteError when Envoy does not answer."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def get(self, path: str) -> str:
        return self._ask("GET", path)

    def post(self, path: str) -> str:
        return self._ask("POST", path)

    def is_live(self) -> bool:
        """Whether Envoy serves: initialised and not draining."""
        try:
            return self.get("/ready").strip() == "LIVE"
        except AteError:
            return False

    def listeners(self) -> dict[str, list[str]]:
        """The bound addresses of the listeners on the network, by name."""
        found: dict[str, list[str]] = {}
        for status in json.loads(self.get("/listeners?format=json")).get("listener_statuses", []):
            address = status.get("local_address", {}).get("socket_address")
            if address:
                found[status["name"]] = [str(Address(address["address"], address["port_value"]))]
        return found

    def stats(self, pattern: str) -> dict[str, int]:
        """Counters and gauges whose names match the regular expression."""
        return parse_stats(self.get(f"/stats?filter={pattern}"))

    def _ask(self, method: str, path: str) -> str:
        connection = http.client.HTTPConnection(
            self.address.host, self.address.port, timeout=_LIMIT_SECONDS
        )
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise AteError(
                f"Envoy's admin API at {self.address} does not answer: {error}"
            ) from error
        finally:
            connection.close()
        # A draining Envoy answers /ready with 503 and its state; everything else is expected to succeed.
        if response.status >= 400 and path != "/ready":
            raise AteError(f"Envoy's admin API refused {method} {path}: {response.status}")
        return body


def parse_stats(text: str) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(": ")
        if value.isdecimal():
            found[name] = int(value)
    return found
