//! What an actor may reach: names, rules, the one validator and the one matcher.
//!
//! ```text
//! SNI, Host, :authority, CONNECT, question  -> host     one spelling for each name
//! rules as the contract carries them        -> validate what is wrong, by field (ateapi, `ate policy validate`)
//!                                           -> matcher  which rule decides, with which effects (gateway, DNS relay)
//! ```
//!
//! Pure functions: nothing here waits, resolves or logs.

mod credential_uri;
mod effect;
mod host;
mod matcher;
mod pattern;
#[cfg(test)]
mod properties;
mod validate;

pub use self::credential_uri::{CredentialUri, CredentialUriError};
pub use self::effect::{Credential, Effect, EffectError, HeaderError, check_header};
pub use self::host::{Authority, Host, HostError};
pub use self::matcher::{Decision, Denial, Layer, Matcher, RuleKind};
pub use self::pattern::{Pattern, PatternError};
pub use self::validate::{Fault, MAX_RULES, validate};
