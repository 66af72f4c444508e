//! What a rule does to requests: headers whose value is replaced by a credential.

use thiserror::Error;

use super::credential_uri::{CredentialUri, CredentialUriError};
use crate::proto::{ActorJwtSource, CredentialHeader};

const MAX_HEADER: usize = 128;
const MAX_PREFIX: usize = 256;
const MAX_AUDIENCES: usize = 16;
const MAX_AUDIENCE: usize = 512;
const EXPIRATION: std::ops::RangeInclusive<i32> = 300..=3600;

/// Names that frame a message, route it or speak for us: a credential there would change more than its value.
const PROTECTED: [&str; 15] = [
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-client-cert",
];
const PROTECTED_PREFIXES: [&str; 2] = ["ate-", "x-ate-"];

/// Why a header may not be replaced.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    #[error("must be a header name of 1 to 128 letters, digits and !#$%&'*+-.^_`|~")]
    NotAName,
    #[error("must not be a protected name: one that frames or routes the message, such as host, content-length or te")]
    Protected,
}

/// Checks a name that a rule wants to replace; the case of letters plays no part.
pub fn check_header(name: &str) -> Result<(), HeaderError> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > MAX_HEADER || !name.bytes().all(token) {
        return Err(HeaderError::NotAName);
    }
    let name = name.to_ascii_lowercase();
    if PROTECTED.contains(&name.as_str()) || PROTECTED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(HeaderError::Protected);
    }
    Ok(())
}

/// Why a header's replacement cannot be carried out.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum EffectError {
    #[error("header: {0}")]
    Header(#[from] HeaderError),
    #[error("prefix: must be at most 256 printable ASCII characters")]
    Prefix,
    #[error("must have exactly one of credential_uri and actor_jwt")]
    Source,
    #[error("credential_uri: {0}")]
    Uri(#[from] CredentialUriError),
    #[error("actor_jwt.audiences: must name 1 to 16 audiences")]
    Audiences,
    #[error("actor_jwt.audiences[{0}]: must have 1 to 512 characters and no control character")]
    Audience(usize),
    #[error("actor_jwt.expiration_seconds: must be from 300 to 3600")]
    Expiration,
}

impl EffectError {
    /// The field below the entry, and what it must be.
    pub(super) fn split(&self) -> (String, String) {
        let text = self.to_string();
        match text.split_once(": ") {
            Some((field, problem)) if !field.contains(' ') => (format!(".{field}"), problem.to_owned()),
            _ => (String::new(), text),
        }
    }
}

/// Where the value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A credential provider.
    Secret(CredentialUri),
    /// A token that the control plane mints for the actor.
    ActorJwt { audiences: Vec<String>, expiration_seconds: i32 },
}

/// One header whose every value is replaced, if the request has it (row E-14).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Effect {
    /// In lower case.
    pub header: String,
    /// Stands before the credential.
    pub prefix: String,
    pub credential: Credential,
}

impl Effect {
    /// Checks and converts one entry of `replace_headers`.
    pub fn parse(entry: &CredentialHeader) -> Result<Self, EffectError> {
        check_header(&entry.header)?;
        if entry.prefix.len() > MAX_PREFIX || !entry.prefix.bytes().all(|b| matches!(b, b' '..=b'~')) {
            return Err(EffectError::Prefix);
        }
        let credential = match (entry.credential_uri.as_str(), &entry.actor_jwt) {
            ("", None) => return Err(EffectError::Source),
            ("", Some(source)) => actor_jwt(source)?,
            (uri, None) => Credential::Secret(CredentialUri::parse(uri)?),
            (_, Some(_)) => return Err(EffectError::Source),
        };
        Ok(Self { header: entry.header.to_ascii_lowercase(), prefix: entry.prefix.clone(), credential })
    }
}

fn actor_jwt(source: &ActorJwtSource) -> Result<Credential, EffectError> {
    if source.audiences.is_empty() || source.audiences.len() > MAX_AUDIENCES {
        return Err(EffectError::Audiences);
    }
    let good =
        |text: &String| !text.is_empty() && text.chars().count() <= MAX_AUDIENCE && !text.chars().any(char::is_control);
    if let Some(at) = source.audiences.iter().position(|text| !good(text)) {
        return Err(EffectError::Audience(at));
    }
    if !EXPIRATION.contains(&source.expiration_seconds) {
        return Err(EffectError::Expiration);
    }
    Ok(Credential::ActorJwt { audiences: source.audiences.clone(), expiration_seconds: source.expiration_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    // B125
    #[test]
    fn protected_and_impossible_header_names_are_refused() {
        for name in ["Host", "content-length", "CONNECTION", "te", "Upgrade", "ate-target-actor", "X-Ate-Anything"] {
            assert_eq!(check_header(name), Err(HeaderError::Protected), "{name}");
        }
        for name in ["", ":authority", "a b", "a\r\nb", "ä", "a:"] {
            assert_eq!(check_header(name), Err(HeaderError::NotAName), "{name:?}");
        }
        for name in ["Authorization", "x-api-key", "cookie"] {
            assert_eq!(check_header(name), Ok(()), "{name}");
        }
    }
}
