"""Which ports a local system gets: 0 becomes a free one, a taken one is an error that names its flag."""

from __future__ import annotations

import dataclasses
import errno
import random
import socket
from collections.abc import Iterator
from pathlib import Path

from atenet.errors import AteError
from atenet.flags import flag_name
from atenet.local.settings import LocalSettings

__all__ = ["beside_others", "settle"]

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20000
_TRIES = 200


def settle(settings: LocalSettings) -> LocalSettings:
    """The settings with every 0 replaced, and every address checked to be free.

    Nothing is held: between this and the process's own bind another program may take a port, and
    then that process says so itself. Raises AteError.
    """
    chosen = {name: getattr(settings, name) for name in settings.ports}
    taken = {port for port in chosen.values() if port}
    for name, port in chosen.items():
        if port:
            _check_free(flag_name(name), settings.address, port)
        else:
            chosen[name] = _free_port(settings.address, taken)
            taken.add(chosen[name])
    for number in range(1, settings.workers + 1):
        for port in (settings.tunnel_port, chosen["denials_port"]):
            _check_free("--worker-network", settings.worker_address(number), port)
    return dataclasses.replace(settings, **chosen)


def _check_free(flag: str, address: str, port: int) -> None:
    problem = _bind(address, port)
    if problem is None:
        return
    if problem.errno == errno.EADDRINUSE:
        raise AteError(
            f"{flag}: {address}:{port} is taken{_holder(address, port)}",
            hint=f"stop what listens there, or choose another {flag}",
        )
    raise AteError(f"{flag}: cannot bind {address}:{port}: {problem.strerror}")


def _free_port(address: str, taken: set[int]) -> int:
    for port in _candidates():
        if port not in taken and _bind(address, port) is None:
            return port
    raise AteError(f"no free port on {address}", hint="give the ports by their flags")


def _candidates() -> Iterator[int]:
    """Below the range that outgoing connections draw from, so that a chosen port stays free."""
    try:
        low = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        low = 32768
    first, last = (_LOWEST, low) if low > _LOWEST + _TRIES else (1024, 65536)
    for _ in range(_TRIES):
        yield random.randrange(first, last)  # noqa: S311 - spreads systems out, guards nothing


def _bind(address: str, port: int) -> OSError | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port in TIME_WAIT is free, one that something listens on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def _holder(address: str, port: int) -> str:
    """` by PID (name)` when the kernel lets us see it."""
    import psutil  # only on the way to an error

    wanted = {(host, port) for host in (address, "0.0.0.0", "::")}  # noqa: S104 - only compared
    try:
        for found in psutil.net_connections("tcp"):
            listens = found.status == psutil.CONN_LISTEN and tuple(found.laddr) in wanted
            if listens and found.pid:
                return f" by {psutil.Process(found.pid).name()} (pid {found.pid})"
    except psutil.Error:
        pass
    return ""


def beside_others(settings: LocalSettings) -> LocalSettings:
    """The same settings on a loopback network of their own, so that two systems never meet.

    127/8 holds 65 536 networks of 256 addresses; the default system has 127.0.0 and 127.1.0.
    """
    for _ in range(_TRIES):
        block = f"127.{random.randrange(16, 255)}.{random.randrange(256)}"  # noqa: S311 - as above
        moved = dataclasses.replace(
            settings, address=f"{block}.254", worker_network=f"{block}.0/24"
        )
        try:
            return settle(moved)
        except AteError:
            continue
    raise AteError("no free network below 127.0.0.0/8")
