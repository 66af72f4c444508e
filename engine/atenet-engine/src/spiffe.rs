//! spiffe: see ARCHITECTURE.md.
