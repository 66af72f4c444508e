//! Sockets in another network namespace.
