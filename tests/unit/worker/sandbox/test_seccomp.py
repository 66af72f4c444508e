"""The program itself, run by a small interpreter; test_security.py runs it in the kernel."""

import errno
import struct

import pytest
from atenet.worker.sandbox.seccomp import program

X86_64, AARCH64 = 0xC000_003E, 0xC000_00B7
ALLOW = 0x7FFF_0000


def verdict(machine: str, audit: int, call: int, argument: int = 0) -> int:
    """What the program answers to one system call."""
    code = program(machine)
    assert code is not None
    instructions = list(struct.iter_unpack("=HBBI", code))
    words = {0: call, 4: audit, 16: argument & 0xFFFF_FFFF}
    accumulator = at = 0
    while True:
        kind, if_true, if_false, value = instructions[at]
        at += 1
        if kind == 0x20:
            accumulator = words[value]
        elif kind == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x25: accumulator > value,
                0x45: bool(accumulator & value),
            }[kind]
            at += if_true if holds else if_false


def refused(with_code: int) -> int:
    return 0x0005_0000 | with_code


@pytest.mark.parametrize("call", [0, 1, 9, 59, 60, 231, 257, 434, 449])
def test_usual_calls_pass(call: int) -> None:
    assert verdict("x86_64", X86_64, call) == ALLOW


@pytest.mark.parametrize("call", [165, 166, 155, 308, 321, 248, 250, 425, 442, 173])
def test_calls_that_reach_past_namespaces_do_not(call: int) -> None:
    assert verdict("x86_64", X86_64, call) == refused(errno.EPERM)


@pytest.mark.parametrize("flag", [0x80, 0x20000, 0x2000000, 0x10000000, 0x20000000, 0x40000000])
def test_no_new_namespaces_by_unshare(flag: int) -> None:
    assert verdict("x86_64", X86_64, 272, flag) == refused(errno.EPERM)
    assert verdict("aarch64", AARCH64, 97, flag | 0x400) == refused(errno.EPERM)


def test_unshare_of_other_things_passes() -> None:
    assert verdict("x86_64", X86_64, 272, 0x400) == ALLOW


def test_clone_makes_threads_and_processes_but_no_namespaces() -> None:
    thread = 0x3D0F00
    assert verdict("x86_64", X86_64, 56, thread) == ALLOW
    assert verdict("x86_64", X86_64, 56, 0x1200011) == ALLOW  # what fork asks for
    assert verdict("x86_64", X86_64, 56, 0x10000000 | 17) == refused(errno.EPERM)
    assert verdict("aarch64", AARCH64, 220, 0x40000000 | 17) == refused(errno.EPERM)


def test_clone3_is_said_not_to_exist() -> None:
    assert verdict("x86_64", X86_64, 435) == refused(errno.ENOSYS)


@pytest.mark.parametrize(
    ("family", "passes"),
    [(1, True), (2, True), (10, True), (16, True)]
    + [(f, False) for f in (0, 9, 15, 17, 38, 40, 44)],
)
def test_sockets_are_ip_local_or_netlink(family: int, passes: bool) -> None:
    expected = ALLOW if passes else refused(errno.EAFNOSUPPORT)
    assert verdict("x86_64", X86_64, 41, family) == expected
    assert verdict("aarch64", AARCH64, 198, family) == expected


def test_another_architectures_numbers_are_not_taken_for_ours() -> None:
    assert verdict("x86_64", 0x4000_0003, 1) == refused(errno.ENOSYS)  # i386
    assert verdict("x86_64", X86_64, 0x4000_0000 | 41) == refused(errno.ENOSYS)  # x32


def test_a_machine_without_a_table_gets_no_filter() -> None:
    assert program("riscv64") is None
