//! The egress gateway's error table: what an actor, or its worker, is told when something does not pass (row E-22).

use http::StatusCode;

use crate::exchange::refuse::Answer;
use crate::http1::HeadError;
use crate::policy;

/// Why an origin's certificate is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distrust {
    Expired,
    NotYetValid,
    WrongName,
    UnknownIssuer,
    Other,
}

/// Why something does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    Policy(policy::Denial),
    /// A request of an intercepted connection for a name that is only passed through.
    NotIntercepted,
    Upgrade,
    NestedConnect,
    /// TRACE where a rule puts a credential in: the answer would show it.
    Trace,
    BadHost,
    BadRequest,
    HeadTooLarge,
    /// The floor: an address that no rule opens.
    Address,
    NotATunnelCertificate,
    ActorUnknown,
    /// The certificate is older than the actor.
    ActorReplaced,
    ActorNotRunning,
    ControlUnavailable,
    PolicyUnavailable,
    MethodNotAllowed,
    BadConnect,
    Unresolved,
    Unreachable,
    Untrusted(Distrust),
    Broken,
    ProtocolUnsupported,
    Idle,
    /// More than is remembered of one tunnel.
    TooManyHosts,
    /// Of one actor at once.
    TooManyLookups,
    CredentialDenied,
    CredentialUnavailable,
    CredentialMisconfigured,
    // Below: connections without a status.
    NoServerName,
    BadHello,
    Silent,
    UnknownProtocol,
    InterceptionOff,
    /// The rule that carried it is gone, or the actor.
    Withdrawn,
}

/// The rows by which another program, which carries the bytes, is to answer by itself: JSON, by name.
#[must_use]
pub fn table() -> serde_json::Value {
    let rows = [
        ("bad-request", Denial::BadRequest),
        ("bad-host", Denial::BadHost),
        ("head-too-large", Denial::HeadTooLarge),
        ("method-not-allowed", Denial::MethodNotAllowed),
        ("control-plane-unavailable", Denial::ControlUnavailable),
        ("origin-unreachable", Denial::Unreachable),
        ("origin-broken", Denial::Broken),
        ("protocol-unsupported", Denial::ProtocolUnsupported),
        ("idle-timeout", Denial::Idle),
        ("origin-untrusted/expired", Denial::Untrusted(Distrust::Expired)),
        ("origin-untrusted/not-yet-valid", Denial::Untrusted(Distrust::NotYetValid)),
        ("origin-untrusted/wrong-name", Denial::Untrusted(Distrust::WrongName)),
        ("origin-untrusted/unknown-issuer", Denial::Untrusted(Distrust::UnknownIssuer)),
        ("origin-untrusted/other", Denial::Untrusted(Distrust::Other)),
    ];
    let row = |denial: Denial| {
        let answer = Answer::from(denial);
        serde_json::json!({
            "reason": answer.reason,
            "status": answer.status.as_u16(),
            "body": answer.body,
            "grpc_status": answer.grpc_status,
            "retry_after": answer.retry_after,
        })
    };
    rows.into_iter().map(|(name, denial)| (name.to_owned(), row(denial))).collect()
}

struct Row {
    status: u16,
    reason: &'static str,
    body: &'static str,
    grpc: u8,
}

const UNAVAILABLE: u8 = 14;
const PERMISSION_DENIED: u8 = 7;
const INVALID_ARGUMENT: u8 = 3;
const INTERNAL: u8 = 13;

impl Denial {
    #[rustfmt::skip] // a table reads best as one
    const fn row(self) -> Row {
        const fn denied(reason: &'static str, body: &'static str) -> Row {
            Row { status: 403, reason, body, grpc: PERMISSION_DENIED }
        }
        const fn row(status: u16, reason: &'static str, body: &'static str, grpc: u8) -> Row {
            Row { status, reason, body, grpc }
        }
        match self {
            Self::Policy(denial @ policy::Denial::NoPolicy) => denied(denial.reason(), "the actor's egress policy has no rule: nothing may leave"),
            Self::Policy(denial @ policy::Denial::NoRule) => denied(denial.reason(), "no egress rule covers this host"),
            Self::Policy(denial @ policy::Denial::Port) => denied(denial.reason(), "egress rules cover this host, but not on this port"),
            Self::NotIntercepted => denied("egress-not-intercepted", "this host may only be reached by a TLS connection of its own"),
            Self::Upgrade => denied("upgrade-denied", "protocol upgrades may not leave an actor"),
            Self::NestedConnect => denied("connect-denied", "CONNECT may not leave an actor; dial the host itself"),
            Self::Trace => denied("trace-denied", "TRACE may not go where a rule puts a credential in: the answer would show it"),
            Self::BadHost => row(400, "bad-host", "the host is missing, repeated, contradictory or not in its usual spelling", INVALID_ARGUMENT),
            Self::BadRequest => row(400, "bad-request", "malformed request", INVALID_ARGUMENT),
            Self::HeadTooLarge => row(431, "head-too-large", "request head too large", INVALID_ARGUMENT),
            Self::Address => denied("address-denied", "the host's addresses are none that this gateway may dial"),
            Self::NotATunnelCertificate => denied("not-a-tunnel-certificate", "the certificate does not name an actor's worker"),
            Self::ActorUnknown => denied("actor-unknown", "no such actor"),
            Self::ActorReplaced => denied("actor-replaced", "the certificate was issued for an earlier actor of this name"),
            Self::ActorNotRunning => denied("actor-not-running", "the actor is not running"),
            Self::ControlUnavailable => row(503, "control-plane-unavailable", "the control plane is unavailable; try again later", UNAVAILABLE),
            Self::PolicyUnavailable => row(503, "policy-unavailable", "the actor's egress policy could not be read; try again later", UNAVAILABLE),
            Self::MethodNotAllowed => row(405, "method-not-allowed", "only CONNECT is served here", INVALID_ARGUMENT),
            Self::BadConnect => row(400, "bad-connect-target", "CONNECT needs an address and a port, as in 192.0.2.1:443", INVALID_ARGUMENT),
            Self::Unresolved => row(502, "origin-unresolved", "the host's name could not be resolved", UNAVAILABLE),
            Self::Unreachable => row(502, "origin-unreachable", "the host could not be reached", UNAVAILABLE),
            Self::Untrusted(Distrust::Expired) => row(502, "origin-untrusted", "the host's certificate has expired", UNAVAILABLE),
            Self::Untrusted(Distrust::NotYetValid) => row(502, "origin-untrusted", "the host's certificate is not valid yet", UNAVAILABLE),
            Self::Untrusted(Distrust::WrongName) => row(502, "origin-untrusted", "the host's certificate is for another name", UNAVAILABLE),
            Self::Untrusted(Distrust::UnknownIssuer) => row(502, "origin-untrusted", "the host's certificate has no trusted issuer", UNAVAILABLE),
            Self::Untrusted(Distrust::Other) => row(502, "origin-untrusted", "the host's TLS handshake failed", UNAVAILABLE),
            Self::Broken => row(502, "origin-broken", "the host broke the connection off", UNAVAILABLE),
            Self::ProtocolUnsupported => row(502, "protocol-unsupported", "the host does not speak the protocol that the request needs", UNAVAILABLE),
            Self::Idle => row(504, "idle-timeout", "the host was silent for too long", UNAVAILABLE),
            Self::TooManyHosts => row(503, "too-many-hosts", "this connection has been used for too many hosts; open another one", UNAVAILABLE),
            Self::TooManyLookups => row(503, "too-many-lookups", "too many names are being looked up for this actor; try again later", UNAVAILABLE),
            Self::CredentialDenied => denied("credential-denied", "the credential that a rule asks for was denied"),
            Self::CredentialUnavailable => row(503, "credential-unavailable", "the credential that a rule asks for could not be had; try again later", UNAVAILABLE),
            Self::CredentialMisconfigured => row(500, "credential-misconfigured", "a rule asks for a credential in a way that cannot be served", INTERNAL),
            Self::NoServerName => denied("no-server-name", "TLS without a usable server name may not leave an actor"),
            Self::BadHello => denied("bad-client-hello", "TLS that cannot be read may not leave an actor"),
            Self::Silent => denied("silent", "nothing was sent that shows what it is"),
            Self::UnknownProtocol => denied("unknown-protocol", "only HTTP and TLS may leave an actor"),
            Self::InterceptionOff => denied("interception-off", "this gateway has no interception authority"),
            Self::Withdrawn => denied("withdrawn", "the rule or the actor is gone"),
        }
    }

    /// The `ate-reason` token, also in logs and metrics.
    pub(super) const fn reason(self) -> &'static str {
        self.row().reason
    }

    pub(super) const fn body(self) -> &'static str {
        self.row().body
    }

    /// The TLS alert that refuses a ClientHello (RFC 8446, section 6).
    pub(super) const fn alert(self) -> u8 {
        match self {
            Self::NoServerName => 112, // unrecognized_name
            Self::BadHello => 50,      // decode_error
            Self::PolicyUnavailable
            | Self::InterceptionOff
            | Self::TooManyHosts
            | Self::TooManyLookups
            | Self::Unresolved
            | Self::Unreachable => 80, // internal_error
            _ => 49,                   // access_denied
        }
    }
}

impl From<policy::Denial> for Denial {
    fn from(denial: policy::Denial) -> Self {
        Self::Policy(denial)
    }
}

impl From<HeadError> for Denial {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::TooLarge => Self::HeadTooLarge,
            HeadError::Host => Self::BadHost,
            _ => Self::BadRequest,
        }
    }
}

impl From<Denial> for Answer {
    fn from(denial: Denial) -> Self {
        let row = denial.row();
        let status = StatusCode::from_u16(row.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = matches!(row.status, 503 | 504).then_some(1);
        Self { status, reason: row.reason, body: row.body.into(), grpc_status: row.grpc, retry_after }
    }
}
