"""A credential provider for one machine: secrets from files and from the environment, by atespace."""
