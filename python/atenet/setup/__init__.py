"""Installs atenet on Kubernetes: `ate-setup`."""
