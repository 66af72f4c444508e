"""What leaves an actor, measured: h2load's requests through tunnels of one actor, to an origin over TLS.

    h2load ─▶ Envoy, as a worker's capture ══ mTLS, CONNECT ══▶ gateway or peer ── TLS ──▶ nginx

Generator, capture, origin and control plane run on the load's cores, what is measured on the path's.
"""
