"""What `make node` is made of, as far as it needs no node."""
