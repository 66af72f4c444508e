"""Identity in a cluster: requests signed or denied, Secrets where there are none, trust bundles, rotation.

Nothing is imported here: the names alone are wanted where manifests are rendered, which load no cryptography.
"""
