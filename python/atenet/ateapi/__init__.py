"""The control plane: who the actors are, where they run, and who may say so."""
