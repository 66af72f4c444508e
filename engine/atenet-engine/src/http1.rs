//! HTTP/1.1 on the wire: heads, bodies, and nothing ambiguous.
