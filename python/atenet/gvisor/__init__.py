"""gVisor's `runsc` on this machine: where it is, and what it and the processor are."""

from atenet.gvisor.locate import OLDEST, find_runsc, version_of
from atenet.gvisor.runtime import Runtime, RuntimeMismatchError

__all__ = ["OLDEST", "Runtime", "RuntimeMismatchError", "find_runsc", "version_of"]
