"""Looks at dependencies: what is noted, and that one cannot hang the others."""

from atenet.router import health
from atenet.router.health import Health


async def test_a_look_notes_success_failure_and_when(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    said = iter([None, "refused", None])

    async def look() -> str | None:
        return next(said)

    watched = Health({"envoy": look}, interval=1.0)
    assert watched.checks["envoy"].healthy is False
    assert await watched.look("envoy") is True
    assert await watched.look("envoy") is False
    assert (watched.checks["envoy"].message, watched.checks["envoy"].failure_count) == (
        "refused",
        1,
    )
    assert await watched.look("envoy") is True
    check = watched.describe()["envoy"]
    assert (check["healthy"], check["success_count"]) == (True, 2)
    assert check["last_success"] >= check["last_failure"] > 0


async def test_a_look_that_hangs_is_a_failure(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import asyncio

    monkeypatch.setattr(health, "_LIMIT_SECONDS", 0.05)

    async def look() -> str | None:
        await asyncio.Event().wait()
        return None

    watched = Health({"control-plane": look}, interval=1.0)
    assert await watched.look("control-plane") is False
    assert "no answer within" in watched.checks["control-plane"].message
