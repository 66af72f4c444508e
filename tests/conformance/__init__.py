"""What docs/conformance.md promises, one file per group, each body run against each dataplane."""
