"""A PostgreSQL server of the tests' own: a temporary directory, a Unix socket, no root."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

PASSWORD = "pw-7f3a"
_numbers = itertools.count()
# Tests kill control planes, never this server's machine: nothing has to reach the disk.
_SETTINGS = ("fsync=off", "full_page_writes=off", "max_connections=200")


@dataclass
class PostgresServer:
    """`address`: where it listens besides its Unix socket."""

    directory: Path
    account: pwd.struct_passwd
    address: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def initialise(self) -> None:
        password = self.directory / "password"
        password.write_text(PASSWORD)
        os.chown(password, self.account.pw_uid, self.account.pw_gid)
        arguments = ("-D", self._data, "-U", "ate", "-A", "scram-sha-256", "-N", "-E", "UTF8")
        done = subprocess.run(
            self._as_account("initdb", *arguments, "--locale=C", f"--pwfile={password}"),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        if self.address:
            with (self.directory / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 0.0.0.0/0 scram-sha-256\n")

    def start(self) -> None:
        places = (f"unix_socket_directories={self.directory}", f"listen_addresses={self.address}")
        settings = (*places, *_SETTINGS)
        options = [word for setting in settings for word in ("-c", setting)]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_account("postgres", "-D", self._data, *options), stdout=log, stderr=log
            )
        deadline = time.monotonic() + 20
        while not self._answers():
            assert time.monotonic() < deadline, "the server does not answer"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends sessions in order; SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://ate:{PASSWORD}@/{database}?host={self.directory}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"t{next(_numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "server.log").read_text()
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url()).close()
            return True
        return False

    def _as_account(self, program: str, *arguments: str) -> list[str]:
        """As an unprivileged user, for the server refuses root; it dies with the tests."""
        identity = (f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}")
        become = ["setpriv", *identity, "--clear-groups"] if os.geteuid() == 0 else ["setpriv"]
        return [*become, "--pdeathsig=INT", "--", _binary(program), *arguments]


@contextlib.contextmanager
def postgres_server(address: str = "") -> Iterator[PostgresServer]:
    directory = Path(tempfile.mkdtemp(prefix="atenet-pg-"))
    account = _account()
    os.chown(directory, account.pw_uid, account.pw_gid)
    server = PostgresServer(directory, account, address)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)  # nothing of it is kept
        shutil.rmtree(directory)


def _account() -> pwd.struct_passwd:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return pwd.getpwnam("nobody")


def _binary(name: str) -> str:
    """Debian keeps the server's programs out of PATH, by version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    assert path, f"{name} is missing: apt-get install postgresql"
    return path
