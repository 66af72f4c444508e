//! Whatever an actor sends: no panic, and no answer that is not an answer to it.

use hickory_proto::op::{Edns, Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, TXT};
use hickory_proto::rr::{RData, Record, RecordType};
use proptest::prelude::*;

use super::answer::{passed_on, written};
use super::question::tests::asking;
use super::question::{Question, Read, read};
use super::relay::Step;
use super::relay::tests::relay;
use super::upstream::answers;
use crate::config::DnsAnswers;

/// A question whose bytes were changed, cut and lengthened.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let name =
        prop_oneof![Just("a.example.".to_owned()), "[a-z]{1,40}(\\.[a-z0-9-]{1,20}){0,4}\\.".prop_map(String::from)];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (any::<u16>(), name, any::<u16>(), edits, 0usize..40, prop::collection::vec(any::<u8>(), 0..20)).prop_map(
        |(id, name, kind, edits, cut, tail)| {
            let mut bytes = asking(id, &name, RecordType::from(kind)).to_vec().unwrap_or_default();
            for (at, byte) in edits {
                let at = at.index(bytes.len().max(1));
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            bytes.extend_from_slice(&tail);
            bytes
        },
    )
}

fn check(bytes: &[u8], answers: DnsAnswers) -> Result<(), TestCaseError> {
    let message = match relay(answers, &["a.example"]).step(bytes) {
        Step::Nothing(_) => return Ok(()),
        Step::Forward(question) => {
            prop_assert_eq!(question.host.as_ref().and_then(|host| host.name()), Some("a.example"));
            return Ok(());
        }
        Step::Answer(message, _) => message,
    };
    let written = written(&message, 4096).expect("an answer can be written");
    let read = Message::from_vec(&written).expect("an answer can be read");
    prop_assert_eq!(&written[..2], &bytes[..2]);
    prop_assert_eq!(read.metadata.message_type, MessageType::Response);
    prop_assert!(read.answers.len() <= 1);
    if !read.answers.is_empty() {
        prop_assert_eq!(read.metadata.response_code, ResponseCode::NoError);
        prop_assert_eq!(read.queries[0].name.to_lowercase().to_ascii(), "a.example.");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_harm_the_relay(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&bytes, DnsAnswers::Synthetic)?;
    }

    #[test]
    fn a_mangled_question_is_answered_as_what_it_is_or_not_at_all(bytes in mangled()) {
        check(&bytes, DnsAnswers::Synthetic)?;
        check(&bytes, DnsAnswers::Upstream)?;
    }

    #[test]
    fn whatever_a_resolver_says_is_passed_on_as_an_answer_or_not_at_all(bytes in said()) {
        let question = asked();
        if let Some(answer) = answers(&bytes, 7, &question.query) {
            let answer = passed_on(&question, answer);
            for limit in [512, 65_535] {
                if let Some(written) = written(&answer, limit) {
                    prop_assert!(written.len() <= limit);
                    let read = Message::from_vec(&written).expect("an answer can be read");
                    prop_assert_eq!(read.metadata.id, 9);
                    prop_assert_eq!(&read.queries, &vec![question.query.clone()]);
                    prop_assert!(read.edns.is_none());
                }
            }
        }
    }
}

fn asked() -> Question {
    match read(&asking(9, "a.example.", RecordType::TXT).to_vec().unwrap_or_default()) {
        Read::Question(question) => *question,
        other => panic!("{other:?}"),
    }
}

/// A resolver's answer to it, changed, cut and lengthened.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    (0usize..40, any::<bool>(), edits, 0usize..60, prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(records, edns, edits, cut, tail)| {
            let query = asked().query;
            let mut message = Message::response(7, hickory_proto::op::OpCode::Query);
            message.add_query(query.clone());
            for at in 0..records {
                let text = RData::TXT(TXT::new(vec!["x".repeat(at * 6)]));
                let data = if at % 3 == 0 { RData::A(A::new(203, 0, 113, 7)) } else { text };
                message.add_answer(Record::from_rdata(query.name.clone(), 60, data));
            }
            message.edns = edns.then(Edns::new);
            let mut bytes = message.to_vec().unwrap_or_default();
            for (at, byte) in edits {
                // The header and the question stay as they are, or nothing would be looked at.
                let at = 23 + at.index(bytes.len().saturating_sub(23).max(1));
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes.truncate(bytes.len().saturating_sub(cut).max(12));
            bytes.extend_from_slice(&tail);
            bytes
        },
    )
}
