//! drain: see ARCHITECTURE.md.
