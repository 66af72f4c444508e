//! The mTLS HTTP/2 CONNECT tunnel between router and worker.

pub mod client;
pub mod server;
