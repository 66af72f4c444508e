//! Who opens a tunnel, and whether that actor lives (rows E-04 and E-05).

use std::net::SocketAddr;

use http::Method;
use rustls::pki_types::CertificateDer;
use tonic::Code;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::denial::Denial;
use crate::actor_ref::ActorRef;
use crate::control::Control;
use crate::http1::{RequestHead, request_framing};
use crate::policy::{Authority, Host};
use crate::proto::{Actor, ActorState};
use crate::spiffe::{Purpose, identity_of};

const TUNNEL_PREFIX: &str = "spiffe://substrate-actor.local/worker-for-actor/";
/// Tunnel certificates are valid from so many seconds before they were issued.
const BACKDATED: i64 = 300;

/// The actor whose worker this is, and when the certificate was issued (seconds since 1970).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) actor: ActorRef,
    issued: i64,
}

/// Reads a certificate whose chain the handshake has checked.
pub(super) fn caller(certificate: Option<&CertificateDer<'_>>) -> Result<Caller, Denial> {
    let bad = Denial::NotATunnelCertificate;
    let der = certificate.ok_or(bad)?;
    let id = identity_of(der, Purpose::Client).map_err(|_| bad)?;
    let name = id.as_str().strip_prefix(TUNNEL_PREFIX).ok_or(bad)?;
    let actor = ActorRef::parse(name.as_bytes()).map_err(|_| bad)?;
    let (_, parsed) = X509Certificate::from_der(der).map_err(|_| bad)?;
    Ok(Caller { actor, issued: parsed.validity().not_before.timestamp() + BACKDATED })
}

/// The address that the actor dialled.
pub(super) fn connect_target(head: &RequestHead) -> Result<SocketAddr, Denial> {
    if head.method != Method::CONNECT {
        return Err(Denial::MethodNotAllowed);
    }
    let has_body = request_framing(head).map_err(|_| Denial::BadRequest)?.has_body();
    match Authority::parse(&head.target) {
        Ok(Authority { host: Host::Address(ip), port: Some(port) }) if !has_body => Ok(SocketAddr::new(ip, port)),
        _ => Err(Denial::BadConnect),
    }
}

/// The uid of the actor, if it may dial now.
pub(super) async fn admit(control: &Control, caller: &Caller) -> Result<String, Denial> {
    let actor = control.get_actor(&caller.actor).await.map_err(|status| match status.code() {
        Code::NotFound => Denial::ActorUnknown,
        _ => Denial::ControlUnavailable,
    })?;
    judge(caller, &actor)
}

/// Booting actors may need the network before they are ready.
fn judge(caller: &Caller, actor: &Actor) -> Result<String, Denial> {
    let metadata = actor.metadata.clone().unwrap_or_default();
    let state = actor.status.as_ref().map_or(ActorState::Unspecified, crate::proto::ActorStatus::state);
    // Certificates have whole seconds.
    if metadata.create_time.is_some_and(|created| caller.issued < created.seconds) {
        return Err(Denial::ActorReplaced);
    }
    match state {
        ActorState::Running | ActorState::Resuming => Ok(metadata.uid),
        _ => Err(Denial::ActorNotRunning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{ActorStatus, ResourceMetadata};

    fn head(method: Method, target: &[u8]) -> RequestHead {
        RequestHead { method, target: target.to_vec(), ..RequestHead::default() }
    }

    #[test]
    fn a_tunnel_is_for_an_address_and_a_port() {
        let target = |text: &str| connect_target(&head(Method::CONNECT, text.as_bytes())).ok();
        assert_eq!(target("192.0.2.1:443"), "192.0.2.1:443".parse().ok());
        assert_eq!(target("[2001:db8::1]:80"), "[2001:db8::1]:80".parse().ok());
        for text in ["192.0.2.1", "a.example:443", "[a.example]:443", "127.1:80", "192.0.2.1:0", "", ":80"] {
            assert_eq!(target(text), None, "{text}");
        }
        let get = connect_target(&head(Method::GET, b"192.0.2.1:443"));
        assert_eq!(get, Err(Denial::MethodNotAllowed));
    }

    fn actor(state: ActorState, created: i64) -> Actor {
        let create_time = Some(prost_types::Timestamp { seconds: created, nanos: 999 });
        let metadata = ResourceMetadata { uid: "u".into(), create_time, ..ResourceMetadata::default() };
        let status = ActorStatus { state: state.into(), ..ActorStatus::default() };
        Actor { metadata: Some(metadata), status: Some(status), ..Actor::default() }
    }

    #[test]
    fn only_a_running_or_resuming_actor_of_this_incarnation_passes() {
        let caller = Caller { actor: ActorRef::parse(b"a/b").unwrap(), issued: 1_000 };
        for state in [ActorState::Running, ActorState::Resuming] {
            assert_eq!(judge(&caller, &actor(state, 1_000)), Ok("u".to_owned()));
            assert_eq!(judge(&caller, &actor(state, 1_001)), Err(Denial::ActorReplaced));
        }
        for state in [ActorState::Unspecified, ActorState::Suspending, ActorState::Suspended, ActorState::Crashed] {
            assert_eq!(judge(&caller, &actor(state, 0)), Err(Denial::ActorNotRunning), "{state:?}");
        }
    }
}
