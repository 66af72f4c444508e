//! An actor's DNS relay: answers names that its policy allows, and no others (row E-23).
//!
//! ```text
//! udp | tcp -> question (pure) -> relay: policy, rate -> names (an address of our own) | upstream -> answer (pure)
//! ```
//!
//! By default no query leaves: a name is answered with an address that only this sandbox knows, and the egress
//! gateway dials by the name that it sees inside the connection. So no name can carry data out, and there is nothing
//! to wait for.

mod answer;
mod names;
mod outcome;
mod policy_slot;
mod question;
mod rate;
mod relay;
mod tcp;
mod udp;
mod upstream;

use std::sync::Arc;

use hickory_proto::op::{Message, ResponseCode};
use tokio::net::{TcpListener, UdpSocket};

use self::answer::Why;
use self::outcome::Outcome;
use self::question::Question;

pub(crate) use self::outcome::DnsMetrics;
pub(crate) use self::relay::Relay;
pub(crate) use self::upstream::Upstream;
use crate::drain::Drain;

/// What the sockets of one relay work with. Cheap to clone.
#[derive(Clone)]
struct Service {
    relay: Arc<Relay>,
    upstream: Upstream,
    metrics: DnsMetrics,
    drain: Drain,
}

impl Service {
    fn count(&self, outcome: Outcome) {
        self.relay.count(outcome);
        self.metrics.add(outcome);
    }

    /// What the node's resolvers say, or that they said nothing.
    async fn forwarded(&self, question: &Question) -> Message {
        if let Some(said) = self.upstream.ask(question).await {
            self.count(Outcome::Answered);
            return answer::passed_on(question, said);
        }
        self.count(Outcome::Failed);
        answer::bare(&question.asker, Some(&question.query), ResponseCode::ServFail, Some(Why::Upstream))
    }
}

/// Serves until the drain begins.
pub(crate) fn serve(
    questions: UdpSocket,
    conversations: TcpListener,
    relay: &Arc<Relay>,
    upstream: &Upstream,
    metrics: &DnsMetrics,
    drain: &Drain,
) {
    let service =
        Service { relay: relay.clone(), upstream: upstream.clone(), metrics: metrics.clone(), drain: drain.clone() };
    tokio::spawn(udp::serve(questions, service.clone()));
    tokio::spawn(tcp::serve(conversations, service));
}

#[cfg(test)]
mod anything_tests;
