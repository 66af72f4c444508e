"""`ate-controller`: what keeps atenet's own resources of a Kubernetes cluster as they are wanted."""
