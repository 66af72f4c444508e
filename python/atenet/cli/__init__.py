"""The commands: `ate` for people, `atenet` for the dataplane's processes."""
