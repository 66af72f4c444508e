//! Why an actor's connection came to nothing. Pure.

use std::fmt;

/// The actor sees a reset each time; the log and the numbers say which it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No certificate was minted for it, or the control plane will mint no more.
    NoCredential,
    /// Its certificate ran out before a new one came.
    Expired,
    /// No address that anything outside has.
    Destination,
    /// The actor has as many connections open as it may.
    TooMany,
    /// The gateway's address was not found, or does not answer.
    Unreachable(String),
    /// The gateway did not prove itself, or did not take our certificate.
    Handshake(String),
    /// The gateway's answer, and its own reason.
    Declined { status: u16, reason: String },
    /// The gateway ended the connection instead of answering.
    NoAnswer(String),
    /// The gateway did not answer in time.
    Late,
    /// The activation ended meanwhile.
    Ended,
}

impl Refusal {
    pub(super) const NAMES: [&'static str; 10] = [
        "no-credential",
        "credential-expired",
        "destination-refused",
        "too-many-connections",
        "gateway-unreachable",
        "gateway-handshake",
        "gateway-declined",
        "gateway-no-answer",
        "gateway-timeout",
        "deactivated",
    ];

    pub(super) const fn place(&self) -> usize {
        match self {
            Self::NoCredential => 0,
            Self::Expired => 1,
            Self::Destination => 2,
            Self::TooMany => 3,
            Self::Unreachable(_) => 4,
            Self::Handshake(_) => 5,
            Self::Declined { .. } => 6,
            Self::NoAnswer(_) => 7,
            Self::Late => 8,
            Self::Ended => 9,
        }
    }

    /// The token in logs and metrics.
    pub(super) fn name(&self) -> &'static str {
        Self::NAMES.get(self.place()).copied().unwrap_or_default()
    }
}

/// What there is to say beyond the token.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Handshake(why) | Self::NoAnswer(why) => f.write_str(why),
            Self::Declined { status, reason } if reason.is_empty() => write!(f, "status {status}"),
            Self::Declined { status, reason } => write!(f, "status {status}: {reason}"),
            Self::NoCredential => f.write_str("the actor has no tunnel certificate"),
            Self::Expired => f.write_str("the actor's tunnel certificate has expired"),
            Self::Destination => f.write_str("an address that only means something on this machine"),
            Self::TooMany => f.write_str("the actor has as many connections open as it may"),
            Self::Late => f.write_str("no answer in time"),
            Self::Ended => f.write_str("the actor ended"),
        }
    }
}
