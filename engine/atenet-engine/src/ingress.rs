//! The native router: listeners to tunnels.
