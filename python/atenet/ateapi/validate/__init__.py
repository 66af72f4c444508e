"""Checks at the edge: whatever passes them may be stored and used as it is."""
