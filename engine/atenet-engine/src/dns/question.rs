//! From a message to the one question in it. Pure.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};

use crate::policy::Host;

/// The longest message that is read as a question: a name has 255 bytes, and options are few.
pub(super) const LONGEST: usize = 4096;
const HEADER: usize = 12;
const RESPONSE_BIT: u8 = 0x80;
/// What UDP carries without anybody having agreed on more.
const PLAIN_UDP: u16 = 512;
/// Larger datagrams would be fragmented on some path.
const LARGEST_UDP: u16 = 1232;

/// A question, and how to speak to whoever asked.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) asker: Asker,
    pub(super) query: Query,
    /// None: a name that no policy can allow.
    pub(super) host: Option<Host>,
}

/// What an answer must take over.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub(super) id: u16,
    pub(super) op_code: OpCode,
    pub(super) recursion_desired: bool,
    pub(super) checking_disabled: bool,
    /// The client's EDNS: how many bytes it takes, and whether it wants signatures.
    pub(super) edns: Option<(u16, bool)>,
}

impl Asker {
    /// How long an answer by UDP may be.
    pub(super) fn udp_limit(&self) -> usize {
        self.edns.map_or(PLAIN_UDP, |(payload, _)| payload.clamp(PLAIN_UDP, LARGEST_UDP)).into()
    }
}

/// What a message is.
#[derive(Debug)]
pub(super) enum Read {
    Question(Box<Question>),
    /// A request that the relay does not serve, whatever the policy: the code says why.
    Unserved(Box<(Asker, Option<Query>, ResponseCode)>),
    /// Not a request at all. An answer could hit somebody who never asked.
    Garbage,
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Read {
    let is_request = bytes.len() >= HEADER && bytes.get(2).is_some_and(|flags| flags & RESPONSE_BIT == 0);
    if !is_request || bytes.len() > LONGEST {
        return Read::Garbage;
    }
    let Ok(message) = Message::from_vec(bytes) else { return Read::Garbage };
    if message.metadata.message_type != MessageType::Query {
        return Read::Garbage;
    }
    let asker = asker(&message);
    let mut queries = message.queries;
    let query = queries.pop();
    let unserved = |query, code| Read::Unserved(Box::new((asker.clone(), query, code)));
    if message.metadata.op_code != OpCode::Query {
        return unserved(query, ResponseCode::NotImp);
    }
    if message.edns.as_ref().is_some_and(|edns| edns.version() != 0) {
        return unserved(query, ResponseCode::BADVERS);
    }
    let Some(query) = query.filter(|_| queries.is_empty() && message.answers.is_empty()) else {
        return unserved(None, ResponseCode::FormErr);
    };
    if query.query_class != DNSClass::IN || is_transfer(query.query_type) {
        return unserved(Some(query), ResponseCode::Refused);
    }
    let host = host(&query);
    Read::Question(Box::new(Question { asker, query, host }))
}

fn asker(message: &Message) -> Asker {
    let edns = |edns: &Edns| (edns.max_payload(), edns.flags().dnssec_ok);
    Asker {
        id: message.metadata.id,
        op_code: message.metadata.op_code,
        recursion_desired: message.metadata.recursion_desired,
        checking_disabled: message.metadata.checking_disabled,
        edns: message.edns.as_ref().map(edns),
    }
}

fn is_transfer(kind: RecordType) -> bool {
    matches!(kind, RecordType::AXFR | RecordType::IXFR)
}

/// The name in the one spelling of SNI, Host and rules. Labels are taken byte for byte: one with a dot inside is not
/// two labels.
fn host(query: &Query) -> Option<Host> {
    let labels: Vec<&[u8]> = query.name.iter().collect();
    if labels.iter().any(|label| label.contains(&b'.')) {
        return None;
    }
    Host::from_sni(&labels.join(&b'.')).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use hickory_proto::rr::Name;

    use super::*;

    /// A question as a stub resolver sends it.
    pub(in super::super) fn asking(id: u16, name: &str, kind: RecordType) -> Message {
        let labels: Vec<&[u8]> = name.split('.').filter(|label| !label.is_empty()).map(str::as_bytes).collect();
        asking_labels(id, &labels, kind)
    }

    fn asking_labels(id: u16, labels: &[&[u8]], kind: RecordType) -> Message {
        let mut message = Message::new(id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_labels(labels.iter().copied()).unwrap(), kind));
        message
    }

    fn question(message: &Message) -> Question {
        match read(&message.to_vec().unwrap()) {
            Read::Question(question) => *question,
            other => panic!("{other:?}"),
        }
    }

    fn unserved(message: &Message) -> ResponseCode {
        match read(&message.to_vec().unwrap()) {
            Read::Unserved(unserved) => unserved.2,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_read_in_its_one_spelling() {
        let host = |name: &str| question(&asking(1, name, RecordType::A)).host.map(|host| host.to_string());
        assert_eq!(host("API.Example.COM."), Some("api.example.com".into()));
        assert_eq!(host("."), None);
        assert_eq!(host("_dmarc.example.com."), None);
        assert_eq!(host("1.2.3.4."), None);
        for odd in [&b"a.b"[..], b"a\0b", b"a b", b"\xff"] {
            let asked = asking_labels(1, &[odd, b"example", b"com"], RecordType::A);
            assert!(question(&asked).host.is_none(), "{odd:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_garbage() {
        let mut answer = asking(1, "a.example.", RecordType::A);
        answer.metadata.message_type = MessageType::Response;
        for bytes in [Vec::new(), vec![0; 11], b"GET / HTTP/1.1\r\n\r\n".to_vec(), answer.to_vec().unwrap()] {
            assert!(matches!(read(&bytes), Read::Garbage), "{bytes:?}");
        }
        let mut long = asking(1, "a.example.", RecordType::A).to_vec().unwrap();
        long.resize(LONGEST + 1, 0);
        assert!(matches!(read(&long), Read::Garbage));
    }

    #[test]
    fn what_the_relay_does_not_serve_is_told_by_its_code() {
        let mut update = asking(1, "a.example.", RecordType::A);
        update.metadata.op_code = OpCode::Update;
        assert!(matches!(read(&update.to_vec().unwrap()), Read::Unserved(_) | Read::Garbage));
        let mut notify = asking(1, "a.example.", RecordType::A);
        notify.metadata.op_code = OpCode::Notify;
        assert_eq!(unserved(&notify), ResponseCode::NotImp);

        let mut two = asking(1, "a.example.", RecordType::A);
        two.add_query(two.queries[0].clone());
        assert_eq!(unserved(&two), ResponseCode::FormErr);

        let mut later = asking(1, "a.example.", RecordType::A);
        let mut edns = Edns::new();
        edns.set_version(1);
        later.set_edns(edns);
        assert_eq!(unserved(&later), ResponseCode::BADVERS);

        let mut chaos = asking(1, "version.bind.", RecordType::TXT);
        chaos.queries[0].set_query_class(DNSClass::CH);
        assert_eq!(unserved(&chaos), ResponseCode::Refused);
        assert_eq!(unserved(&asking(1, "a.example.", RecordType::AXFR)), ResponseCode::Refused);
    }

    #[test]
    fn how_much_a_client_takes_by_udp_is_bounded() {
        let limit = |payload: Option<u16>| {
            let mut message = asking(1, "a.example.", RecordType::A);
            if let Some(payload) = payload {
                let mut edns = Edns::new();
                edns.set_max_payload(payload);
                message.set_edns(edns);
            }
            question(&message).asker.udp_limit()
        };
        assert_eq!([limit(None), limit(Some(1)), limit(Some(900)), limit(Some(65535))], [512, 512, 900, 1232]);
    }
}
