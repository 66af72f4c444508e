"""What an actor must not be able to do, each tried by a real actor."""

import os
import secrets
import socket
from pathlib import Path

import pytest
from atenet.worker.sandbox import Bind

from tests.support.actor_box import ActorBox, ask, python
from tests.support.eventually import eventually


async def test_it_has_no_capability_and_cannot_gain_one(box: ActorBox) -> None:
    _, said = await box.run("cat", "/proc/self/status")
    fields = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


async def test_it_runs_as_an_account_of_its_own(box: ActorBox) -> None:
    _, one = await box.run("id", "-u", uid="uid-one")
    _, other = await box.run("id", "-u", uid="uid-other")
    _, again = await box.run("id", "-u", uid="uid-one")
    assert one == again != other
    assert min(int(one), int(other)) >= 0x6000_0000
    _, groups = await box.run("id", "-G", uid="uid-one")
    assert groups == one


async def test_a_file_that_only_root_may_read_stays_unread(box: ActorBox, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o755)
    (shown / "secret").write_text("the key")
    (shown / "secret").chmod(0o600)
    (shown / "open").write_text("for all")
    bind = Bind(shown, "/shown", read_only=True)
    ended, said = await box.run("cat", "/shown/open", "/shown/secret", binds=(bind,))
    assert ended.status == 1
    assert "for all" in said
    assert "the key" not in said
    assert "Permission denied" in said


async def test_the_hosts_files_are_not_there(box: ActorBox, tmp_path: Path) -> None:
    (tmp_path / "host-file").write_text("the host's")
    paths = [str(tmp_path), "/root", "/etc/shadow", "/var/lib", "/run/netns", "/sys", "/boot"]
    _, said = await box.run("ls", "-d", *paths)
    for path in paths:
        assert f"cannot access '{path}'" in said, path


async def test_the_system_is_read_only(box: ActorBox) -> None:
    _, said = await box.run(
        "sh",
        "-c",
        "for p in /usr/x /bin/x /etc/x /x /run/x /proc/sys/kernel/hostname; do "
        "echo no > $p && echo wrote $p; done; true",
    )
    assert "wrote" not in said


async def test_tmp_home_and_shared_memory_are_private_and_writable(box: ActorBox) -> None:
    script = "for d in /tmp /home/actor /dev/shm; do ls $d; echo mine > $d/file && echo ok; done"
    for _ in range(2):
        ended, said = await box.run("sh", "-c", script)
        assert (ended.status, said) == (0, "ok\nok\nok\n")
    assert not Path("/tmp/file").exists()


async def test_it_sees_no_process_but_its_own(box: ActorBox) -> None:
    _, said = await box.run("sh", "-c", "ls /proc | grep -E '^[0-9]+$' | wc -l; kill -9 1; echo $?")
    count, *_ = said.splitlines()
    assert int(count) <= 5
    assert "not permitted" in said or said.endswith("1\n")


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(40, socket.SOCK_STREAM)",  # vsock leads to the hypervisor, not to a netns
        "socket.socket(38, socket.SOCK_SEQPACKET)",  # the kernel's crypto
    ],
)
async def test_no_socket_but_ip_and_local_ones(box: ActorBox, attempt: str) -> None:
    ended, said = await box.run(*python(f"import socket\n{attempt}"))
    assert ended.status == 1
    assert any(why in said for why in ("PermissionError", "Address family not supported"))


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("unshare(CLONE_NEWUSER)", "272, 0x10000000"),
        ("unshare(CLONE_NEWNET)", "272, 0x40000000"),
        ("clone(CLONE_NEWUSER)", "56, 0x10000011, 0, 0, 0, 0"),
        ("mount", "165, 0, 0, 0, 0, 0"),
        ("setns", "308, 0, 0"),
        ("bpf", "321, 0, 0, 0"),
        ("keyctl", "250, 0, 0, 0, 0, 0"),
        ("io_uring_setup", "425, 8, 0"),
        ("userfaultfd", "323, 0"),
        ("perf_event_open", "298, 0, 0, 0, 0, 0"),
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86-64's")
async def test_the_filter_refuses(box: ActorBox, call: str, number: str) -> None:
    source = f"import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.syscall({number}), ctypes.get_errno())"
    _, said = await box.run(*python(source))
    assert said == "-1 1\n", call


async def test_threads_and_processes_still_start(box: ActorBox) -> None:
    """libc's clone3 is told to fall back; nothing of that may show."""
    source = (
        "import threading, subprocess, os\n"
        "t = threading.Thread(target=lambda: print('thread', flush=True)); t.start(); t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n"
    )
    _, said = await box.run(*python(source))
    assert said == "thread\nchild\n"


async def test_the_hosts_loopback_and_the_worker_are_out_of_reach(box: ActorBox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = (
            "import socket\n"
            f"for host in ('127.0.0.1', '127.1.0.1', '169.254.17.1', '169.254.169.254'):\n"
            f"    for port in ({port}, 8443, 15001):\n"
            "        try:\n"
            "            socket.create_connection((host, port), 3); print('reached', host, port)\n"
            "        except ConnectionRefusedError: pass\n"
            "print('done')\n"
        )
        _, said = await box.run(*python(source))
    assert said == "done\n"


@pytest.mark.conformance("T-06")
async def test_two_actors_with_equal_addresses_do_not_see_each_other(box: ActorBox) -> None:
    """Each listens on the same inner address and abstract socket, and finds only itself."""
    source = (
        "import socket, sys, threading\n"
        "me = sys.argv[1].encode()\n"
        "server = socket.create_server(('', 80))\n"
        "local = socket.socket(socket.AF_UNIX); local.bind('\\0same-name'); local.listen()\n"
        "print('listening', flush=True)\n"
        "while True:\n"
        "    c, _ = server.accept(); c.sendall(me); c.close()\n"
    )
    networks = [await box.networks.acquire() for _ in range(2)]
    names = [secrets.token_hex(4) for _ in networks]
    groups = [
        await box.sandbox.start(
            box.launch(*python(source), name, network=network, uid=f"uid-{name}")
        )
        for network, name in zip(networks, names, strict=True)
    ]
    try:
        for name, network in zip(names, networks, strict=True):
            log = box.where / f"uid-{name}" / "logs" / "main.log"
            await eventually(lambda log=log: "listening" in log.read_text())
            assert await ask(network.gateway_path) == name.encode()
            assert not (box.data_of(f"uid-{name}") / "other").exists()
    finally:
        for group, network in zip(groups, networks, strict=True):
            await group.stop(0)
            await box.networks.release(network)


async def test_the_environment_is_the_templates_and_secret_from_the_process_list(
    box: ActorBox,
) -> None:
    secret = secrets.token_hex(16)
    network = await box.networks.acquire()
    group = await box.sandbox.start(
        box.launch(
            *python(
                "import os\n"
                "os.environ.pop('LC_CTYPE', 0)  # Python's own\n"
                "print(sorted(os.environ), flush=True)\n"
                "open('/data/up', 'w')\n"
                "import signal; signal.pause()"
            ),
            env={"TOKEN": secret, "LD_PRELOAD": "/data/evil.so"},
            network=network,
        )
    )
    try:
        await eventually((box.data_of("uid-1") / "up").exists)
        listed = b"".join(
            path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
        )
        assert secret.encode() not in listed
        log = box.where / "uid-1" / "logs" / "main.log"
        await eventually(lambda: "TOKEN" in log.read_text())
        said = log.read_text()
        # The loader complains once, in the command itself: no program before it saw the variable.
        assert said.count("/data/evil.so") == 1
        assert "['LD_PRELOAD', 'PATH', 'TOKEN']" in said
    finally:
        await group.stop(0)
        await box.networks.release(network)


async def test_its_processes_cannot_outnumber_the_limit(box: ActorBox) -> None:
    names = ("NPROC", "NOFILE", "CORE")
    source = f"import resource as r; print(*(r.getrlimit(getattr(r, f'RLIMIT_{{n}}'))[1] for n in {names}))"
    _, said = await box.run(*python(source))
    processes, files, core = (int(word) for word in said.split())
    assert processes <= 4096
    assert files <= 16384
    assert core == 0


async def test_it_knows_its_name_and_who_it_is(box: ActorBox) -> None:
    _, said = await box.run("sh", "-c", "hostname; whoami; cat /etc/resolv.conf", name="agent-7")
    assert said == "agent-7\nactor\nnameserver 169.254.17.1\n"


async def test_it_inherits_no_descriptor(box: ActorBox) -> None:
    _, said = await box.run("sh", "-c", "ls /proc/self/fd")
    assert said.split() == ["0", "1", "2", "3"]  # 3 is what ls reads
