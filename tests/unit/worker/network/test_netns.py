import contextlib
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.worker.network import netns


def on_thread(function: Callable[[], None]) -> None:
    """Runs it on a thread of its own, so that the test's thread stays where it is."""
    errors: list[BaseException] = []

    def body() -> None:
        try:
            function()
        except Exception as e:  # noqa: BLE001 - raised again below
            errors.append(e)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def own_inode() -> int:
    return Path("/proc/thread-self/ns/net").stat().st_ino


def test_a_created_namespace_is_the_threads_until_the_block_ends(prefix: str) -> None:
    def body() -> None:
        before = own_inode()
        with netns.own_namespace_kept():
            netns.create(f"{prefix}a")
            assert own_inode() == netns.path_of(f"{prefix}a").stat().st_ino != before
        assert own_inode() == before

    on_thread(body)
    assert netns.names(prefix) == [f"{prefix}a"]
    netns.remove(f"{prefix}a")


def test_a_thread_comes_back_even_when_the_body_fails(prefix: str) -> None:
    def body() -> None:
        before = own_inode()
        with contextlib.suppress(RuntimeError), netns.own_namespace_kept():
            netns.create(f"{prefix}a")
            raise RuntimeError
        assert own_inode() == before

    on_thread(body)
    netns.remove(f"{prefix}a")


def test_ip_sees_the_namespaces(prefix: str) -> None:
    def body() -> None:
        with netns.own_namespace_kept():
            netns.create(f"{prefix}seen")

    on_thread(body)
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert f"{prefix}seen" in listed.stdout
    netns.remove(f"{prefix}seen")


def test_a_taken_name_is_refused(prefix: str) -> None:
    def body() -> None:
        with netns.own_namespace_kept():
            netns.create(f"{prefix}a")
            netns.create(f"{prefix}a")

    with pytest.raises(AteError, match="exists already"):
        on_thread(body)
    netns.remove(f"{prefix}a")


def test_removing_what_is_not_there_is_fine(prefix: str) -> None:
    netns.remove(f"{prefix}never")


def test_processes_inside_are_found(prefix: str) -> None:
    def body() -> None:
        with netns.own_namespace_kept():
            netns.create(f"{prefix}a")
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as inside:
                assert netns.processes_inside([f"{prefix}a"]) == [inside.pid]
        # This process has a thread inside too, but its main thread is what counts.

    on_thread(body)
    assert netns.processes_inside([f"{prefix}a"]) == []
    netns.remove(f"{prefix}a")


@pytest.mark.parametrize("bad", ["", "a", "A-", "1abc", "a" * 25, "a/b", "..", "a b"])
def test_a_vague_or_strange_prefix_is_refused(bad: str) -> None:
    with pytest.raises(AteError, match="net-prefix"):
        netns.check_prefix(bad)


def test_a_usual_prefix_is_taken() -> None:
    assert netns.check_prefix("ate1a2b3c4d-12-") == "ate1a2b3c4d-12-"
