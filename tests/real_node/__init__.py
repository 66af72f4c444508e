"""A real node: kubelet and containerd in namespaces of their own, and the whole path on it. `make node`."""
