"""What an installation consists of, as pure functions of its configuration."""

from atenet.setup.objects.everything import Cluster, everything

__all__ = ["Cluster", "everything"]
