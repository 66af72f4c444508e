"""atenet: the networking layer of Agent Substrate.

Python decides (control plane, workers, identity, configuration, people's
command); the Rust engine (`atenet._engine`) carries every request and byte.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
