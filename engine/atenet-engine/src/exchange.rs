//! One exchange of HTTP: its four parties over HTTP/1.1 and HTTP/2, header hygiene, and the pump that knows neither.
//!
//! Ingress and egress both carry requests with it. Names are the ingress's: `client` is the near side, `actor` the
//! far one; on the way out the near side is the actor and the far one its destination.

pub(crate) mod actor_http1;
pub(crate) mod actor_http2;
pub(crate) mod client_http1;
pub(crate) mod client_http2;
pub(crate) mod frames_http2;
pub(crate) mod headers;
pub(crate) mod http2_conn;
pub(crate) mod party;
pub(crate) mod pump;
pub(crate) mod refuse;
pub(crate) mod request_http2;
pub(crate) mod sniff;
