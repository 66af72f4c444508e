"""What leaves an actor: its certificate, its DNS relay's policy, its way to the gateway."""

from atenet.worker.egress.agent import NodeAgent
from atenet.worker.egress.capture import EngineCapture
from atenet.worker.egress.config import capture_config
from atenet.worker.egress.egress import Egress, EgressUnavailableError, WorkerEgress

__all__ = [
    "Egress",
    "EgressUnavailableError",
    "EngineCapture",
    "NodeAgent",
    "WorkerEgress",
    "capture_config",
]
