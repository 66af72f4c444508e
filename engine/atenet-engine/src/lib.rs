//! The atenet engine: what happens per request, per connection and per byte.
//!
//! Data flows one way:
//!
//! ```text
//! ingress   listener -> actor reference -> resolver (cache -> flight -> parking -> ateapi) -> tunnel client -> worker
//! front     ateapi's listener -> a read of the store, or its own server
//! ext_proc  Envoy -> actor reference -> the same resolver -> dynamic metadata or a refusal
//! egress    tunnel admission -> first bytes -> policy decision -> intercept | pass through | forward -> origin by name
//! atunnel   listener -> activation table -> the actor's own network
//! capture   redirected TCP -> mTLS CONNECT -> gateway
//! dns       an actor's question -> its policy -> an address of the relay's own, or the node's resolvers
//! ```
//!
//! Configuration arrives as whole validated snapshots; nothing here knows of Python.

pub mod actor_ref;
pub mod api_front;
pub mod assignment;
mod authority;
pub mod capture;
pub mod config;
pub mod control;
pub mod denials;
mod dns;
pub mod drain;
pub mod egress;
pub mod error;
mod exchange;
pub mod extproc;
mod grpc;
pub mod http1;
pub mod ingress;
pub mod pipe;
pub mod policy;
pub mod probes;
pub mod refusal;
pub mod resolve;
pub mod router;
pub mod spiffe;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod timestamp;
pub mod tls;
pub mod trace;
pub mod tunnel;

/// The control plane's contract, generated from `proto/`.
#[allow(clippy::all, missing_docs, unreachable_pub)]
pub mod proto {
    tonic::include_proto!("ateapi");
}

/// What the egress gateway asks of credential providers.
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod credential_proto {
    tonic::include_proto!("credprovider");
}

/// The subset of Envoy's external processing API that the router speaks.
#[allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]
mod envoy_proto {
    tonic::include_proto!("envoy.service.ext_proc.v3");
}

/// The subset of its processing API for connections.
#[allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]
mod envoy_network_proto {
    tonic::include_proto!("envoy.service.network_ext_proc.v3");
}

/// The subset of OTLP that spans are sent in.
#[allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]
mod otlp_proto {
    tonic::include_proto!("opentelemetry.proto.collector.trace.v1");
}
