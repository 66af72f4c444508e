//! control: see ARCHITECTURE.md.
