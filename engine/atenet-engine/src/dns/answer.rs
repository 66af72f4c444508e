//! Answers as bytes. Pure.

use std::net::Ipv4Addr;

use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{RData, Record};

use super::question::{Asker, Question};

/// Short, so that a name that moves to another address is soon asked for again.
const TTL_SECONDS: u32 = 30;
/// What we take ourselves (no question needs it).
const OUR_PAYLOAD: u16 = 1232;
/// RFC 8914.
const EXTENDED_ERROR: u16 = 15;

/// Why there is no answer, for clients that can be told (RFC 8914).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// 18, Prohibited.
    Policy,
    /// 14, Not Ready.
    PolicyUnknown,
    /// 22, No Reachable Authority.
    Upstream,
}

impl Why {
    fn option(self) -> EdnsOption {
        let (code, text): (u16, &str) = match self {
            Self::Policy => (18, "the actor's egress policy does not allow this name"),
            Self::PolicyUnknown => (14, "the actor's egress policy is not known now"),
            Self::Upstream => (22, "no resolver answered"),
        };
        let mut data = code.to_be_bytes().to_vec();
        data.extend_from_slice(text.as_bytes());
        EdnsOption::Unknown(EXTENDED_ERROR, data)
    }
}

fn begin(asker: &Asker, query: Option<&Query>, code: ResponseCode) -> Message {
    let mut message = Message::response(asker.id, asker.op_code);
    message.metadata.recursion_desired = asker.recursion_desired;
    message.metadata.checking_disabled = asker.checking_disabled;
    message.metadata.recursion_available = true;
    message.metadata.response_code = code;
    message.add_queries(query.cloned());
    message.edns = edns(asker, code);
    message
}

/// Who does not speak EDNS must not be answered in it.
fn edns(asker: &Asker, code: ResponseCode) -> Option<Edns> {
    let (_, dnssec_ok) = asker.edns?;
    let mut edns = Edns::new();
    edns.set_max_payload(OUR_PAYLOAD).set_dnssec_ok(dnssec_ok).set_rcode_high(code.high());
    Some(edns)
}

/// Without records.
pub(super) fn bare(asker: &Asker, query: Option<&Query>, code: ResponseCode, why: Option<Why>) -> Message {
    let mut message = begin(asker, query, code);
    if let (Some(edns), Some(why)) = (&mut message.edns, why) {
        edns.options_mut().insert(why.option());
    }
    message
}

/// With one address.
pub(super) fn address(question: &Question, address: Ipv4Addr) -> Message {
    let mut message = begin(&question.asker, Some(&question.query), ResponseCode::NoError);
    let data = RData::A(A(address));
    message.add_answer(Record::from_rdata(question.query.name.clone(), TTL_SECONDS, data));
    message
}

/// What a resolver of the node said, as an answer to this question.
pub(super) fn passed_on(question: &Question, mut answer: Message) -> Message {
    let asker = &question.asker;
    answer.metadata.id = asker.id;
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.recursion_desired = asker.recursion_desired;
    answer.metadata.checking_disabled = asker.checking_disabled;
    answer.metadata.truncation = false;
    answer.queries = vec![question.query.clone()];
    answer.edns = edns(asker, answer.metadata.response_code);
    answer
}

/// The answer as bytes of at most `limit`; one that is longer is emptied and marked, to be asked for again by TCP.
/// None: it cannot be written.
pub(super) fn written(message: &Message, limit: usize) -> Option<Vec<u8>> {
    let bytes = message.to_vec().ok()?;
    if bytes.len() <= limit {
        return Some(bytes);
    }
    message.truncate().to_vec().ok().filter(|bytes| bytes.len() <= limit)
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::rdata::TXT;
    use hickory_proto::rr::{Name, RecordType};

    use super::super::question::tests::asking;
    use super::super::question::{Read, read};
    use super::*;

    fn question(edns: Option<u16>) -> Question {
        let mut message = asking(7, "A.example.", RecordType::TXT);
        message.edns = edns.map(|payload| {
            let mut edns = Edns::new();
            edns.set_max_payload(payload);
            edns
        });
        match read(&message.to_vec().unwrap()) {
            Read::Question(question) => *question,
            other => panic!("{other:?}"),
        }
    }

    fn long() -> Message {
        let mut answer = Message::response(99, hickory_proto::op::OpCode::Query);
        for _ in 0..12 {
            let text = TXT::new(vec!["x".repeat(250)]);
            answer.add_answer(Record::from_rdata(Name::from_ascii("a.example.").unwrap(), 5, RData::TXT(text)));
        }
        answer
    }

    #[test]
    fn a_long_answer_is_emptied_and_marked_by_udp_and_whole_by_tcp() {
        for edns in [None, Some(1232)] {
            let question = question(edns);
            let answer = passed_on(&question, long());
            let short = Message::from_vec(&written(&answer, question.asker.udp_limit()).unwrap()).unwrap();
            assert!(short.metadata.truncation && short.answers.is_empty() && short.authorities.is_empty());
            assert_eq!((short.metadata.id, &short.queries), (7, &vec![question.query.clone()]));
            assert_eq!(short.edns.is_some(), edns.is_some());
            let whole = Message::from_vec(&written(&answer, 65535).unwrap()).unwrap();
            assert!(!whole.metadata.truncation);
            assert_eq!(whole.answers.len(), 12);
        }
    }

    #[test]
    fn who_speaks_edns_is_told_why() {
        let told = |edns: Option<u16>| {
            let question = question(edns);
            let answer = bare(&question.asker, Some(&question.query), ResponseCode::NXDomain, Some(Why::Policy));
            Message::from_vec(&answer.to_vec().unwrap()).unwrap().edns
        };
        assert_eq!(told(None), None);
        let edns = told(Some(1232)).unwrap();
        let option = edns.option(EXTENDED_ERROR.into());
        assert!(matches!(option, Some(EdnsOption::Unknown(15, data)) if data.starts_with(&[0, 18])), "{option:?}");
    }

    #[test]
    fn an_answer_repeats_the_question_as_it_was_spelled() {
        let question = question(None);
        let answer = address(&question, Ipv4Addr::new(198, 18, 0, 1));
        let read = Message::from_vec(&answer.to_vec().unwrap()).unwrap();
        assert_eq!(read.queries[0].name.to_ascii(), "A.example.");
        assert_eq!(read.answers[0].data, RData::A(A(Ipv4Addr::new(198, 18, 0, 1))));
    }
}
