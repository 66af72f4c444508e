//! The values that rules put into requests: secrets of providers and actors' tokens (rows E-14 to E-16).
//!
//! A value lives here, for a short while, and in the request that it goes into; no log or answer shows one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::OnceCell;
use tonic::{Code, Status};

use super::denial::Denial;
use crate::actor_ref::ActorRef;
use crate::config::CredentialProviderConfig;
use crate::control::{Connection, Control, in_time};
use crate::credential_proto::FetchSecretRequest;
use crate::credential_proto::credential_provider_client::CredentialProviderClient;
use crate::error::EngineError;
use crate::policy::{Credential, CredentialUri};

const ENTRIES: u64 = 10_000;

/// Nothing prints it.
type Secret = Arc<[u8]>;
/// The uid, not the name: an actor made again under the same name does not inherit.
type Key = (Arc<str>, Credential);

pub(super) struct Credentials {
    providers: HashMap<String, CredentialProviderClient<Connection>>,
    /// A cell is filled by the first who asks; the others wait for it.
    cache: Cache<Key, Arc<OnceCell<Secret>>>,
}

impl Credentials {
    pub(super) fn new(providers: &[CredentialProviderConfig], kept: Duration) -> Result<Self, EngineError> {
        let client = |provider: &CredentialProviderConfig| {
            let connection = Connection::to_provider(&provider.target)?;
            Ok((provider.class.clone(), CredentialProviderClient::new(connection)))
        };
        let cache = Cache::builder().max_capacity(ENTRIES).time_to_live(kept).build();
        Ok(Self { providers: providers.iter().map(client).collect::<Result<_, EngineError>>()?, cache })
    }

    pub(super) async fn value(
        &self,
        control: &Control,
        (actor, uid): (&ActorRef, &Arc<str>),
        credential: &Credential,
    ) -> Result<Secret, Denial> {
        let key = (uid.clone(), credential.clone());
        let cell = self.cache.get_with_by_ref(&key, Arc::default);
        let fetched = cell
            .get_or_try_init(|| async {
                match credential {
                    Credential::Secret(uri) => self.secret(actor, uri).await,
                    Credential::ActorJwt { audiences, expiration_seconds } => control
                        .actor_jwt(actor, uid, audiences, *expiration_seconds)
                        .await
                        .map_err(|status| denial(&status))
                        .and_then(|token| header_value(token.as_bytes())),
                }
            })
            .await
            .cloned();
        if fetched.is_err() {
            self.cache.invalidate(&key);
        }
        fetched
    }

    async fn secret(&self, actor: &ActorRef, uri: &CredentialUri) -> Result<Secret, Denial> {
        let mut provider = self.providers.get(uri.class()).cloned().ok_or(Denial::CredentialMisconfigured)?;
        let asked = FetchSecretRequest {
            uri: uri.as_str().to_owned(),
            actor_spiffe_id: format!("spiffe://substrate-actor.local/actor/{}/{}", actor.atespace(), actor.name()),
        };
        let answer = in_time(provider.fetch_secret(asked)).await.map_err(|status| denial(&status))?;
        header_value(&answer.opaque_bytes)
    }
}

fn denial(status: &Status) -> Denial {
    match status.code() {
        Code::NotFound | Code::PermissionDenied | Code::Unauthenticated | Code::Aborted => Denial::CredentialDenied,
        Code::InvalidArgument | Code::Unimplemented => Denial::CredentialMisconfigured,
        _ => Denial::CredentialUnavailable,
    }
}

/// Files end in a newline that is not the secret's; anything else that no header may hold is a fault.
fn header_value(bytes: &[u8]) -> Result<Secret, Denial> {
    let bytes = bytes.strip_suffix(b"\n").map_or(bytes, |rest| rest.strip_suffix(b"\r").unwrap_or(rest));
    if bytes.is_empty() || bytes.iter().any(|b| *b < b' ' || *b == 0x7f) {
        return Err(Denial::CredentialUnavailable);
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // B124
    #[test]
    fn one_final_newline_goes_and_nothing_else_that_breaks_a_header_stays() {
        for (bytes, want) in [(&b"tok"[..], "tok"), (b"tok\n", "tok"), (b"tok\r\n", "tok"), (b" tok ", " tok ")] {
            assert_eq!(&*header_value(bytes).unwrap(), want.as_bytes());
        }
        for bytes in [&b""[..], b"\n", b"\r\n", b"\n\n", b"to\nk", b"tok\n\n", b"tok\0", b"tok\x7f", b"tok\r"] {
            assert_eq!(header_value(bytes).err(), Some(Denial::CredentialUnavailable), "{bytes:?}");
        }
    }

    #[test]
    fn a_providers_answer_decides_between_denied_unavailable_and_misconfigured() {
        let of = |code: Code| denial(&Status::new(code, "secret words"));
        assert_eq!(of(Code::NotFound), Denial::CredentialDenied);
        assert_eq!(of(Code::PermissionDenied), Denial::CredentialDenied);
        assert_eq!(of(Code::Unavailable), Denial::CredentialUnavailable);
        assert_eq!(of(Code::DeadlineExceeded), Denial::CredentialUnavailable);
        assert_eq!(of(Code::InvalidArgument), Denial::CredentialMisconfigured);
    }
}
