//! error: see ARCHITECTURE.md.
