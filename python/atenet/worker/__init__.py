"""The worker supervisor: hosts actors, each in a sandbox on a private network of its own."""
