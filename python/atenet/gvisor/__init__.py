"""gVisor's `runsc` on this machine: where it is, what it and the processor are, and what memory needs."""

from atenet.gvisor.locate import OLDEST, find_runsc, version_of
from atenet.gvisor.needs import MemoryNeeds
from atenet.gvisor.runtime import Runtime, RuntimeMismatchError
from atenet.gvisor.states import STATES, make_owned, owned

__all__ = [
    "OLDEST",
    "STATES",
    "MemoryNeeds",
    "Runtime",
    "RuntimeMismatchError",
    "find_runsc",
    "make_owned",
    "owned",
    "version_of",
]
