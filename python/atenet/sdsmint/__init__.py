"""`atenet sdsmint`: mints interception leaves for Envoy; the one process that reads the interception key."""
