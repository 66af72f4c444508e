import subprocess

from atenet.atelet.fence import fence
from atenet.worker.sandbox import account_of


def started(uid: str) -> subprocess.Popen[bytes]:
    account = account_of(uid)
    return subprocess.Popen(["sleep", "60"], user=account, group=account, extra_groups=[])


def test_every_process_of_the_actor_is_killed_and_nobody_elses(root: None) -> None:
    mine = [started("uid-fenced") for _ in range(3)]
    with started("uid-other") as other:
        try:
            assert fence("uid-fenced") == 3
            assert [process.wait(10) for process in mine] == [-9, -9, -9]
            assert other.poll() is None
        finally:
            other.kill()


def test_an_actor_that_does_not_run_is_fine(root: None) -> None:
    assert fence("uid-that-never-ran") == 0
