"""The system calls an actor may not make, as the BPF program that bubblewrap loads.

The namespaces already hide the host; this closes what namespaces do not cover (new user
namespaces, kernel keyrings, BPF, io_uring, sockets outside IP such as packet and vsock).
The kernel answers unconditional verdicts from a bitmap, so an allowed call costs nothing.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

__all__ = ["program"]

_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_ABOVE, _RETURN = 0x20, 0x15, 0x45, 0x25, 0x06
_OFFSET_CALL, _OFFSET_ARCH, _OFFSET_ARGUMENT = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000
_X32_BIT = 0x4000_0000

# NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = 0x80 | 0x2_0000 | 0x200_0000 | 0x400_0000 | 0x800_0000 | 0x1000_0000
_NEW_NAMESPACES |= 0x2000_0000 | 0x4000_0000
# CLONE_NEWTIME shares its bit with clone's exit signal, so only unshare is asked for it.
_CLONE_FLAGS = _NEW_NAMESPACES & ~0x80
# unix, inet, inet6, netlink (name look-ups and interface lists use it)
_SOCKET_FAMILIES = (1, 2, 10, 16)


# Each refused call's number on x86-64 and on arm64 (None: the machine has no such call).
_REFUSED: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "userfaultfd": (323, 282),
}


@dataclass(frozen=True)
class _Machine:
    column: int  # of the table above
    audit: int
    has_x32: bool
    clone: int
    clone3: int
    unshare: int
    socket: int


_MACHINES = {
    "x86_64": _Machine(0, 0xC000_003E, True, clone=56, clone3=435, unshare=272, socket=41),
    "aarch64": _Machine(1, 0xC000_00B7, False, clone=220, clone3=435, unshare=97, socket=198),
}


def program(machine: str | None = None) -> bytes | None:
    """The filter as the kernel's `sock_filter` array; None for a machine we have no table for."""
    calls = _MACHINES.get(machine or platform.machine())
    if calls is None:
        return None
    refuse = _errno(errno.EPERM)
    code = [
        _load(_OFFSET_ARCH),
        _skip_if(_JUMP_EQUAL, calls.audit),
        _errno(errno.ENOSYS),  # a 32-bit call: its numbers mean something else
        _load(_OFFSET_CALL),
    ]
    if calls.has_x32:
        code += [_unless(_JUMP_ABOVE, _X32_BIT - 1), _errno(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        if (number := numbers[calls.column]) is not None:
            code += [_unless(_JUMP_EQUAL, number), refuse]
    # Its flags are behind a pointer that a filter cannot follow; libc falls back to clone.
    code += [_unless(_JUMP_EQUAL, calls.clone3), _errno(errno.ENOSYS)]
    code += _check_argument(calls.unshare, [_unless(_JUMP_ANY_BIT, _NEW_NAMESPACES), refuse])
    code += _check_argument(calls.clone, [_unless(_JUMP_ANY_BIT, _CLONE_FLAGS), refuse])
    code += _check_argument(calls.socket, _only_families())
    return b"".join([*code, _verdict(_ALLOW)])


def _check_argument(number: int, checks: list[bytes]) -> list[bytes]:
    """`checks` see the low half of the call's first argument; passing them all allows the call."""
    body = [_load(_OFFSET_ARGUMENT), *checks, _verdict(_ALLOW)]
    return [_instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def _only_families() -> list[bytes]:
    """Jumps past the refusal for each family that is allowed."""
    count = len(_SOCKET_FAMILIES)
    return [
        *(
            _instruction(_JUMP_EQUAL, count - index, 0, family)
            for index, family in enumerate(_SOCKET_FAMILIES)
        ),
        _errno(errno.EAFNOSUPPORT),
    ]


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, 0, 0, offset)


def _skip_if(jump: int, value: int) -> bytes:
    return _instruction(jump, 1, 0, value)


def _unless(jump: int, value: int) -> bytes:
    """The next instruction is for the case that the comparison holds; else it is skipped."""
    return _instruction(jump, 0, 1, value)


def _errno(code: int) -> bytes:
    return _verdict(_ERRNO | code)


def _verdict(value: int) -> bytes:
    return _instruction(_RETURN, 0, 0, value)


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
