//! The error table: what a client is told when a request is not carried.
//!
//! One table serves both dataplanes (rows I-23 and I-24 of docs/conformance.md).

use http::StatusCode;

/// Which program carries the bytes; it decides a few statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dataplane {
    Agentgateway,
    Envoy,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// `ate-target-actor` is missing, repeated or malformed.
    BadTarget,
    ActorNotFound,
    /// The park budget ran out and no worker had room.
    NoCapacity,
    /// The parking lot is full.
    ParkingFull,
    /// The actor is in a state that did not pass within the budget.
    ActorUnavailable,
    /// The actor crashed; waiting does not help.
    ActorCrashed,
    /// The control plane could not be reached, or said Unavailable.
    ControlPlaneUnavailable,
    DeadlineExceeded,
    PermissionDenied,
    Unauthenticated,
    Internal,
    /// The worker refused the tunnel, or could not be reached or verified.
    WorkerUnreachable,
    /// The worker kept saying that the actor is not there.
    StaleAssignment,
    /// The actor's port refused, or the actor broke off before it answered.
    ActorConnectFailed,
    /// The actor does not speak the protocol that the request needs (gRPC over HTTP/1.1).
    ProtocolUnsupported,
    /// The request's framing is ambiguous or broken.
    BadRequest,
    /// CONNECT without a usable port.
    BadConnectPort,
    /// CONNECT on a plain listener, anything else on a CONNECT listener.
    MethodNotAllowed,
    /// The request head is too large.
    HeadTooLarge,
    /// The actor was silent past the idle limit.
    IdleTimeout,
    /// The process is stopping.
    Draining,
}

/// One row of the table.
struct Row {
    status: u16,
    reason: &'static str,
    body: &'static str,
    /// gRPC status code.
    grpc: u8,
    /// Seconds for `retry-after`.
    retry_after: Option<u16>,
}

const NOT_FOUND: u8 = 5;
const DEADLINE_EXCEEDED: u8 = 4;
const PERMISSION_DENIED: u8 = 7;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
const UNAUTHENTICATED: u8 = 16;
const INVALID_ARGUMENT: u8 = 3;

impl Refusal {
    /// Every row of the table.
    pub const ALL: [Self; 21] = [
        Self::BadTarget,
        Self::ActorNotFound,
        Self::NoCapacity,
        Self::ParkingFull,
        Self::ActorUnavailable,
        Self::ActorCrashed,
        Self::ControlPlaneUnavailable,
        Self::DeadlineExceeded,
        Self::PermissionDenied,
        Self::Unauthenticated,
        Self::Internal,
        Self::WorkerUnreachable,
        Self::StaleAssignment,
        Self::ActorConnectFailed,
        Self::ProtocolUnsupported,
        Self::BadRequest,
        Self::BadConnectPort,
        Self::MethodNotAllowed,
        Self::HeadTooLarge,
        Self::IdleTimeout,
        Self::Draining,
    ];

    #[rustfmt::skip] // a table reads best as one
    const fn row(self) -> Row {
        const fn row(status: u16, reason: &'static str, body: &'static str, grpc: u8, retry: Option<u16>) -> Row {
            Row { status, reason, body, grpc, retry_after: retry }
        }
        match self {
            Self::BadTarget => row(404, "bad-target", "no actor named: set ate-target-actor to <atespace>/<actor>", NOT_FOUND, None),
            Self::ActorNotFound => row(404, "actor-not-found", "no such actor", NOT_FOUND, None),
            Self::NoCapacity => row(504, "no-capacity", "no worker has room for the actor; try again later", DEADLINE_EXCEEDED, Some(1)),
            Self::ParkingFull => row(503, "parking-full", "too many requests are waiting; try again later", UNAVAILABLE, Some(1)),
            Self::ActorUnavailable => row(503, "actor-unavailable", "the actor is changing state; try again later", UNAVAILABLE, Some(1)),
            Self::ActorCrashed => row(503, "actor-crashed", "the actor crashed and does not resume by itself", UNAVAILABLE, Some(30)),
            Self::ControlPlaneUnavailable => row(503, "control-plane-unavailable", "the control plane is unavailable; try again later", UNAVAILABLE, Some(1)),
            Self::DeadlineExceeded => row(504, "deadline-exceeded", "the actor did not become ready in time", DEADLINE_EXCEEDED, Some(1)),
            Self::PermissionDenied => row(403, "permission-denied", "permission denied", PERMISSION_DENIED, None),
            Self::Unauthenticated => row(401, "unauthenticated", "unauthenticated", UNAUTHENTICATED, None),
            Self::Internal => row(500, "internal", "internal error", INTERNAL, None),
            Self::WorkerUnreachable => row(503, "worker-unreachable", "the actor's worker could not be reached; try again later", UNAVAILABLE, Some(1)),
            Self::StaleAssignment => row(503, "stale-assignment", "the actor moved and was not found again; try again later", UNAVAILABLE, Some(1)),
            Self::ActorConnectFailed => row(502, "actor-connect-failed", "the actor did not accept or broke the connection", UNAVAILABLE, None),
            Self::ProtocolUnsupported => row(502, "protocol-unsupported", "the actor does not speak HTTP/2, which gRPC needs", UNAVAILABLE, None),
            Self::BadRequest => row(400, "bad-request", "malformed request", INVALID_ARGUMENT, None),
            Self::BadConnectPort => row(400, "bad-connect-port", "CONNECT needs an authority with a port from 1 to 65535", INVALID_ARGUMENT, None),
            Self::MethodNotAllowed => row(405, "method-not-allowed", "method not allowed on this listener", INVALID_ARGUMENT, None),
            Self::HeadTooLarge => row(431, "head-too-large", "request head too large", INVALID_ARGUMENT, None),
            Self::IdleTimeout => row(504, "idle-timeout", "the actor was silent for too long", DEADLINE_EXCEEDED, None),
            Self::Draining => row(503, "draining", "the router is stopping; try again", UNAVAILABLE, Some(1)),
        }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(self, plane: Dataplane) -> StatusCode {
        // The seeds give Envoy 503 where the native dataplane says 504.
        let code = match (self, plane) {
            (Self::NoCapacity, Dataplane::Envoy) => 503,
            _ => self.row().status,
        };
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The `ate-reason` token, also the metric and log label.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.row().reason
    }

    /// One line of text, without the newline.
    #[must_use]
    pub const fn body(self) -> &'static str {
        self.row().body
    }

    /// The gRPC status for callers that speak gRPC.
    #[must_use]
    pub const fn grpc_status(self, plane: Dataplane) -> u8 {
        match (self, plane) {
            (Self::NoCapacity, Dataplane::Envoy) => UNAVAILABLE,
            _ => self.row().grpc,
        }
    }

    /// Seconds for `retry-after`; every 503 and 504 has one.
    #[must_use]
    pub const fn retry_after(self) -> Option<u16> {
        match self.row() {
            Row { retry_after: None, status: 503 | 504, .. } => Some(1),
            row => row.retry_after,
        }
    }
}
