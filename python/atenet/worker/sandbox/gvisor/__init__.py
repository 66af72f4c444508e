"""The gvisor class: the actor's command on a kernel of its own, whose memory can be kept."""

from atenet.worker.sandbox.gvisor.sandbox import GvisorSandbox

__all__ = ["GvisorSandbox"]
