//! What one actor's relay answers to a question.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use parking_lot::Mutex;

use super::answer::{self, Why};
use super::names::Names;
use super::outcome::{Counts, Outcome};
use super::policy_slot::{PolicySlot, Verdict};
use super::question::{Question, Read, read};
use super::rate::Rate;
use crate::actor_ref::ActorRef;
use crate::capture::Budget;
use crate::config::{DnsAnswers, DnsConfig};
use crate::denials::{Denials, Denied};

const NAME_DENIED: &str = "name-denied";

/// One activation's.
pub(crate) struct Relay {
    actor: ActorRef,
    uid: Arc<str>,
    policy: PolicySlot,
    answers: DnsAnswers,
    names: Mutex<Names>,
    rate: Mutex<Rate>,
    counts: Counts,
    said: Budget,
    denials: Denials,
}

/// What to do with a message.
#[derive(Debug)]
pub(super) enum Step {
    Nothing(Outcome),
    Answer(Box<Message>, Outcome),
    /// The node's resolvers are to be asked.
    Forward(Box<Question>),
}

impl Relay {
    pub(crate) fn new(
        (actor, uid): (ActorRef, Arc<str>),
        config: &DnsConfig,
        max_age: Duration,
        denials: Denials,
    ) -> Self {
        Self {
            actor,
            uid,
            policy: PolicySlot::new(max_age),
            answers: config.answers,
            names: Mutex::new(Names::new(config.range, config.names)),
            rate: Mutex::new(Rate::new(config.queries_per_second, Instant::now())),
            counts: Counts::default(),
            said: Budget::default(),
            denials,
        }
    }

    pub(crate) const fn policy(&self) -> &PolicySlot {
        &self.policy
    }

    /// Questions by what became of them.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.all()
    }

    pub(super) fn count(&self, outcome: Outcome) {
        self.counts.add(outcome);
    }

    /// Never waits, whatever the bytes are.
    pub(super) fn step(&self, bytes: &[u8]) -> Step {
        if !self.rate.lock().take(Instant::now()) {
            return Step::Nothing(Outcome::Limited);
        }
        match read(bytes) {
            Read::Garbage => Step::Nothing(Outcome::Garbage),
            Read::Unserved(unserved) => {
                let (asker, query, code) = *unserved;
                let answer = answer::bare(&asker, query.as_ref(), code, None);
                Step::Answer(Box::new(answer), Outcome::Refused)
            }
            Read::Question(question) => self.judge(question),
        }
    }

    fn judge(&self, question: Box<Question>) -> Step {
        let bare = |code, why, outcome| {
            let message = answer::bare(&question.asker, Some(&question.query), code, why);
            Step::Answer(Box::new(message), outcome)
        };
        let verdict = question.host.as_ref().map_or(Verdict::Denied, |host| self.policy.verdict(host));
        match verdict {
            Verdict::Denied => {
                self.note(&question);
                bare(ResponseCode::NXDomain, Some(Why::Policy), Outcome::Denied)
            }
            Verdict::Unknown => bare(ResponseCode::ServFail, Some(Why::PolicyUnknown), Outcome::Unknown),
            Verdict::Allowed if self.is_empty(question.query.query_type) => {
                bare(ResponseCode::NoError, None, Outcome::Empty)
            }
            Verdict::Allowed if self.answers == DnsAnswers::Upstream => Step::Forward(question),
            Verdict::Allowed => {
                let name = question.host.as_ref().and_then(|host| host.name()).unwrap_or_default();
                let address = self.names.lock().address(name);
                Step::Answer(Box::new(answer::address(&question, address)), Outcome::Answered)
            }
        }
    }

    /// Actors have no IPv6, and a service binding could bring keys that hide the name from the gateway. Of our own
    /// there are only addresses.
    fn is_empty(&self, kind: RecordType) -> bool {
        match kind {
            RecordType::AAAA | RecordType::HTTPS | RecordType::SVCB => true,
            RecordType::A | RecordType::ANY => false,
            _ => self.answers == DnsAnswers::Synthetic,
        }
    }

    /// One line for each name that was denied, within bounds; people can ask for the last ones.
    fn note(&self, question: &Question) {
        let host = question.host.as_ref().map(ToString::to_string);
        let (reason, detail) = (NAME_DENIED, "no egress rule covers this name");
        let denied = Denied { layer: None, host, port: None, rule: None, reason, detail };
        self.denials.note(&self.actor, Some(&self.uid), denied);
        let Some(unsaid) = self.said.take(Instant::now()) else { return };
        tracing::info!(
            actor = %self.actor,
            uid = %self.uid,
            name = %question.query.name.to_ascii(),
            kind = %question.query.query_type,
            reason = NAME_DENIED,
            unsaid = (unsaid > 0).then_some(unsaid),
            "egress name denied"
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv4Addr;

    use hickory_proto::rr::RData;

    use super::super::question::tests::asking;
    use super::*;
    use crate::proto::{EgressPolicy, EgressRule, HttpRule};

    pub(in super::super) fn relay(answers: DnsAnswers, allowed: &[&str]) -> Relay {
        let config = DnsConfig { answers, ..DnsConfig::default() };
        let actor = ActorRef::parse(b"team/agent").unwrap();
        let relay = Relay::new((actor, "uid".into()), &config, Duration::from_secs(10), Denials::default());
        let http = HttpRule { hostnames: allowed.iter().map(|&name| name.to_owned()).collect(), ..HttpRule::default() };
        let rule = EgressRule { http: Some(http), ..EgressRule::default() };
        relay.policy().set(&EgressPolicy { rules: vec![rule], ..EgressPolicy::default() });
        relay
    }

    fn ask(relay: &Relay, name: &str, kind: RecordType) -> Step {
        relay.step(&asking(1, name, kind).to_vec().unwrap())
    }

    fn answered(step: Step) -> (ResponseCode, Vec<RData>, Outcome) {
        match step {
            Step::Answer(message, outcome) => {
                let data = message.answers.iter().map(|record| record.data.clone()).collect();
                (message.metadata.response_code, data, outcome)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_allowed_name_has_an_address_of_the_relays_own() {
        let relay = relay(DnsAnswers::Synthetic, &["a.example", "*.b.example"]);
        let (code, data, outcome) = answered(ask(&relay, "A.Example.", RecordType::A));
        assert_eq!((code, outcome), (ResponseCode::NoError, Outcome::Answered));
        assert_eq!(data, [RData::A(hickory_proto::rr::rdata::A(Ipv4Addr::new(198, 18, 0, 1)))]);
        assert_eq!(answered(ask(&relay, "a.example.", RecordType::A)).1, data);
        assert_ne!(answered(ask(&relay, "x.b.example.", RecordType::A)).1, data);
    }

    #[test]
    fn all_else_that_is_allowed_is_empty() {
        let relay = relay(DnsAnswers::Synthetic, &["a.example"]);
        for kind in [RecordType::AAAA, RecordType::HTTPS, RecordType::TXT, RecordType::MX, RecordType::CNAME] {
            let answer = answered(ask(&relay, "a.example.", kind));
            assert_eq!(answer, (ResponseCode::NoError, vec![], Outcome::Empty), "{kind}");
        }
    }

    #[test]
    fn a_name_that_is_not_allowed_does_not_exist() {
        for answers in [DnsAnswers::Synthetic, DnsAnswers::Upstream] {
            let relay = relay(answers, &["a.example", "*.b.example"]);
            for name in ["b.example.", "x.y.b.example.", "a.example.net.", "data.a.example.", "_x.b.example.", "."] {
                for kind in [RecordType::A, RecordType::AAAA, RecordType::TXT, RecordType::HTTPS] {
                    let answer = answered(ask(&relay, name, kind));
                    assert_eq!(answer, (ResponseCode::NXDomain, vec![], Outcome::Denied), "{name} {kind}");
                }
            }
        }
    }

    #[test]
    fn upstream_is_asked_for_what_is_allowed_and_the_gateway_can_use() {
        let relay = relay(DnsAnswers::Upstream, &["a.example"]);
        for kind in [RecordType::A, RecordType::TXT, RecordType::MX] {
            assert!(matches!(ask(&relay, "a.example.", kind), Step::Forward(_)), "{kind}");
        }
        for kind in [RecordType::AAAA, RecordType::HTTPS, RecordType::SVCB] {
            assert_eq!(answered(ask(&relay, "a.example.", kind)).2, Outcome::Empty, "{kind}");
        }
    }

    #[test]
    fn a_flood_is_not_answered() {
        let relay = relay(DnsAnswers::Synthetic, &["a.example"]);
        let limited =
            (0..5000).filter(|_| matches!(ask(&relay, "a.example.", RecordType::A), Step::Nothing(Outcome::Limited)));
        assert!(limited.count() >= 1000);
    }
}
