//! What several modules' tests stand on: authorities and credentials as files, a control plane.

pub(crate) mod api;
pub(crate) mod pki;
