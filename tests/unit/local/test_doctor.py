"""What `ate doctor` says of a machine's limits."""

import ctypes
import os

from atenet.local.doctor import examine, judge_inotify


def test_too_few_inotify_instances_are_told_with_what_they_break_and_what_helps() -> None:
    assert judge_inotify(128, 118).state == "ok"
    short = judge_inotify(128, 119)
    assert short.state == "optional"
    assert "119 of 128" in short.found
    assert "signal 6" in short.found
    assert "sysctl fs.inotify.max_user_instances=1024" in str(short.hint)
    assert "max_user_instances=8192" in str(judge_inotify(4096, 4096).hint)


def test_the_instances_that_are_taken_are_counted() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    more = [libc.inotify_init1(os.O_CLOEXEC) for _ in range(3)]
    try:
        assert min(more) >= 0, os.strerror(ctypes.get_errno())
        (found,) = (finding for finding in examine() if finding.what == "inotify")
        # Other programs of this user may have some.
        assert int(found.found.split()[0]) >= 3
    finally:
        for file in more:
            os.close(file)
