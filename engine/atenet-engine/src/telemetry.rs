//! telemetry: see ARCHITECTURE.md.
