"""Root file systems for containers, by name, on one node."""

from atenet.images.store import Image, ImageStore

__all__ = ["Image", "ImageStore"]
