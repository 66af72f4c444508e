//! tls: see ARCHITECTURE.md.
