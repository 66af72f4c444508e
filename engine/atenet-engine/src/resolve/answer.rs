//! What an attempt's answer means. Pure: no clock, no socket.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tonic::{Code, Status};

use crate::actor_ref::ActorRef;
use crate::assignment::Assignment;
use crate::proto::{Actor, ActorState, ResumeActorResponse, WorkerAssignment};
use crate::refusal::Refusal;
use crate::spiffe::SpiffeId;

/// A failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Waiting does not help.
    Final(Refusal),
    /// It can clear by waiting; the refusal is for when it does not.
    Retryable(Refusal),
    /// The same, and it passes so quickly that it is retried even with parking turned off.
    Contended(Refusal),
}

/// Reads a gRPC failure.
pub(super) fn verdict(status: &Status, actor: &ActorRef) -> Verdict {
    use Verdict::{Contended, Final, Retryable};
    match status.code() {
        Code::ResourceExhausted => Retryable(Refusal::NoCapacity),
        Code::FailedPrecondition => match named_state(status.message(), actor) {
            Some(ActorState::Crashed) => Final(Refusal::ActorCrashed),
            Some(ActorState::Deleting) => Final(Refusal::ActorNotFound),
            _ => Retryable(Refusal::ActorUnavailable),
        },
        Code::Aborted => Contended(Refusal::ActorUnavailable),
        Code::Unavailable => Retryable(Refusal::ControlPlaneUnavailable),
        Code::NotFound => Final(Refusal::ActorNotFound),
        Code::DeadlineExceeded => Final(Refusal::DeadlineExceeded),
        Code::PermissionDenied => Final(Refusal::PermissionDenied),
        Code::Unauthenticated => Final(Refusal::Unauthenticated),
        _ => Final(Refusal::Internal),
    }
}

/// The terminal state that a FailedPrecondition's text names. The actor's own name is no state: `team/crashed` may
/// well be suspending.
fn named_state(message: &str, actor: &ActorRef) -> Option<ActorState> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    message
        .split(|c| !in_word(c))
        .filter(|word| ![actor.as_str(), actor.name(), actor.atespace()].contains(word))
        .find_map(|word| {
            let state = word.strip_prefix("ACTOR_STATE_").unwrap_or(word);
            let is = |name: &str| state.eq_ignore_ascii_case(name);
            match () {
                () if is("crashed") => Some(ActorState::Crashed),
                () if is("deleting") => Some(ActorState::Deleting),
                () => None,
            }
        })
}

/// Reads a success. `Err` says what is missing, for the log.
pub(super) fn assignment(
    response: ResumeActorResponse,
    asked: &ActorRef,
    connect_port: u16,
) -> Result<Assignment, &'static str> {
    let Actor { metadata, status, .. } = response.actor.ok_or("no actor")?;
    let metadata = metadata.ok_or("no metadata")?;
    if metadata.atespace != asked.atespace() || metadata.name != asked.name() {
        return Err("another actor than the one asked for");
    }
    if metadata.uid.is_empty() {
        return Err("no uid");
    }
    let worker = status.and_then(|status| status.worker_assignment).ok_or("no worker assignment")?;
    let ip = usable_ip(&worker.worker_pod_ips).ok_or("no usable worker address")?;
    Ok(Assignment {
        actor: asked.clone(),
        actor_uid: metadata.uid.into(),
        version: metadata.version,
        worker: SocketAddr::new(ip, connect_port),
        worker_epoch: worker.worker_epoch,
        worker_spiffe_id: spiffe_id(worker).ok_or("no usable worker identity")?,
    })
}

fn usable_ip(ips: &[String]) -> Option<IpAddr> {
    let unicast = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast();
    ips.iter().filter_map(|ip| ip.parse().ok()).find(unicast)
}

/// An absent identity is the one that the worker's pool implies.
fn spiffe_id(worker: WorkerAssignment) -> Option<Arc<str>> {
    if worker.worker_spiffe_id.is_empty() {
        let id = SpiffeId::pod(&worker.worker_namespace, &worker.worker_pool).ok()?;
        return Some(id.as_str().into());
    }
    let id = SpiffeId::try_from(worker.worker_spiffe_id).ok()?;
    Some(id.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{ActorStatus, ResourceMetadata};

    fn actor() -> ActorRef {
        ActorRef::parse(b"team/crashed").unwrap()
    }

    fn failed(code: Code, text: &str) -> Verdict {
        verdict(&Status::new(code, text), &actor())
    }

    #[test]
    fn the_four_retryable_codes_are_told_from_the_rest() {
        assert_eq!(failed(Code::ResourceExhausted, ""), Verdict::Retryable(Refusal::NoCapacity));
        assert_eq!(failed(Code::FailedPrecondition, ""), Verdict::Retryable(Refusal::ActorUnavailable));
        assert_eq!(failed(Code::Aborted, ""), Verdict::Contended(Refusal::ActorUnavailable));
        assert_eq!(failed(Code::Unavailable, ""), Verdict::Retryable(Refusal::ControlPlaneUnavailable));
        for code in (0..=16).map(Code::from_i32) {
            let waits = matches!(failed(code, ""), Verdict::Retryable(_) | Verdict::Contended(_));
            let listed = [Code::ResourceExhausted, Code::FailedPrecondition, Code::Aborted, Code::Unavailable];
            assert_eq!(waits, listed.contains(&code), "{code:?}");
        }
    }

    #[test]
    fn final_codes_have_the_refusals_of_the_table() {
        for (code, refusal) in [
            (Code::NotFound, Refusal::ActorNotFound),
            (Code::DeadlineExceeded, Refusal::DeadlineExceeded),
            (Code::PermissionDenied, Refusal::PermissionDenied),
            (Code::Unauthenticated, Refusal::Unauthenticated),
            (Code::InvalidArgument, Refusal::Internal),
            (Code::Internal, Refusal::Internal),
            (Code::Unknown, Refusal::Internal),
        ] {
            assert_eq!(failed(code, ""), Verdict::Final(refusal), "{code:?}");
        }
    }

    #[test]
    fn a_crashed_state_is_terminal_but_an_actor_of_that_name_is_not() {
        for text in ["actor team/crashed is CRASHED", "state ACTOR_STATE_CRASHED", "the actor has Crashed: oom"] {
            assert_eq!(failed(Code::FailedPrecondition, text), Verdict::Final(Refusal::ActorCrashed), "{text}");
        }
        for text in ["actor team/crashed is SUSPENDING", "actor \"crashed\" is pausing", "actor is not-crashed"] {
            assert_eq!(failed(Code::FailedPrecondition, text), Verdict::Retryable(Refusal::ActorUnavailable), "{text}");
        }
        assert_eq!(failed(Code::FailedPrecondition, "is DELETING"), Verdict::Final(Refusal::ActorNotFound));
    }

    fn answer(ips: &[&str], id: &str) -> ResumeActorResponse {
        let worker = WorkerAssignment {
            worker_namespace: "default".into(),
            worker_pool: "local".into(),
            worker_pod_ips: ips.iter().map(|ip| (*ip).to_owned()).collect(),
            worker_spiffe_id: id.into(),
            worker_epoch: 3,
            ..Default::default()
        };
        let metadata = ResourceMetadata {
            atespace: "team".into(),
            name: "crashed".into(),
            uid: "u1".into(),
            version: 7,
            ..Default::default()
        };
        let status = ActorStatus { worker_assignment: Some(worker), ..Default::default() };
        let actor = Actor { metadata: Some(metadata), status: Some(status), ..Default::default() };
        ResumeActorResponse { actor: Some(actor), resumed: true }
    }

    #[test]
    fn the_first_usable_address_is_dialled_on_the_connect_port() {
        let found =
            assignment(answer(&["", "nonsense", "0.0.0.0", "10.1.2.3", "10.9.9.9"], ""), &actor(), 8443).unwrap();
        assert_eq!(found.worker, "10.1.2.3:8443".parse().unwrap());
        assert_eq!((&*found.actor_uid, found.version, found.worker_epoch), ("u1", 7, 3));
        let six = assignment(answer(&["fd00::1"], ""), &actor(), 443).unwrap();
        assert_eq!(six.worker, "[fd00::1]:443".parse().unwrap());
    }

    #[test]
    fn an_absent_identity_is_the_pools_and_a_named_one_is_kept() {
        let derived = assignment(answer(&["10.1.2.3"], ""), &actor(), 8443).unwrap();
        assert_eq!(&*derived.worker_spiffe_id, "spiffe://cluster.local/ns/default/sa/local");
        let named = assignment(answer(&["10.1.2.3"], "spiffe://other.example/w"), &actor(), 8443).unwrap();
        assert_eq!(&*named.worker_spiffe_id, "spiffe://other.example/w");
    }

    #[test]
    fn answers_that_cannot_be_used_say_why() {
        let none = ResumeActorResponse::default();
        assert_eq!(assignment(none, &actor(), 1), Err("no actor"));
        assert_eq!(assignment(answer(&[], ""), &actor(), 1), Err("no usable worker address"));
        assert_eq!(assignment(answer(&["10.0.0.1"], "router"), &actor(), 1), Err("no usable worker identity"));
        let other = ActorRef::parse(b"team/other").unwrap();
        assert_eq!(assignment(answer(&["10.0.0.1"], ""), &other, 1), Err("another actor than the one asked for"));
        let mut bare = answer(&["10.0.0.1"], "");
        bare.actor.as_mut().unwrap().status.as_mut().unwrap().worker_assignment = None;
        assert_eq!(assignment(bare, &actor(), 1), Err("no worker assignment"));
    }
}
