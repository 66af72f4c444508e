"""What `--store` names: a SQLite file, a PostgreSQL database by its URL, or a file that says which."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from atenet.errors import AteError

__all__ = ["PostgresUrl", "StoreLocation", "store_location"]

_SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True)
class PostgresUrl:
    """A libpq connection URL. Shows itself without password and parameters."""

    text: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.text)
        user, _, place = parts.netloc.rpartition("@")
        name = user.partition(":")[0]
        return f"postgresql://{name}{'@' if name else ''}{place}{parts.path}"


StoreLocation = Path | PostgresUrl


def store_location(given: str | Path) -> StoreLocation:
    """Raises AteError, which does not repeat a URL: it may hold a password."""
    text = str(given)
    if text.startswith("@"):
        text = _written(Path(text[1:]))
    scheme, separator, _ = text.partition("://")
    if not separator:
        return Path(text)
    if scheme not in _SCHEMES:
        raise AteError(
            f"--store cannot be a {scheme}:// URL",
            hint="give the path of a SQLite file, or postgresql://user@host/database",
        )
    return _checked(text)


def _written(file: Path) -> str:
    """What a file says: a URL with a password is on no command line then."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise AteError(f"--store: cannot read {file}: {reason}") from None
    if not text:
        raise AteError(
            f"--store: {file} is empty", hint="it is to hold postgresql://user@host/database"
        )
    return text


def _checked(text: str) -> PostgresUrl:
    # The driver takes a while to load, and only who uses it needs it.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        urlsplit(text)
        conninfo_to_dict(text)
    except (psycopg.Error, ValueError):
        # What the driver says of it may quote the password.
        raise AteError(
            "--store is not a valid postgresql:// URL",
            hint="percent-encode the special characters of user, password and path, "
            "and give parameters that libpq knows",
        ) from None
    return PostgresUrl(text)
