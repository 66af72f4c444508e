"""Real and scripted ends for tests: control plane, workers, actors, clients, the router process."""
