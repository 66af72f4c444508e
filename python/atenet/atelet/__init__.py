"""The node agent: actors' files, snapshots, and the node's workers."""
