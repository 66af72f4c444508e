//! The node's resolvers, asked in their order.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::question::Question;

/// One resolver's time, by UDP and TCP together.
const ATTEMPT: Duration = Duration::from_millis(1500);
/// A datagram that is lost is sent again once, as stub resolvers do.
const ROUNDS: usize = 2;
const OUR_PAYLOAD: u16 = 4096;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Upstream(Arc<[SocketAddr]>);

impl Upstream {
    pub(crate) fn new(resolvers: Vec<SocketAddr>) -> Self {
        Self(resolvers.into())
    }

    /// The first answer that settles it; else one that says that a resolver could not; none when nobody answered.
    pub(super) async fn ask(&self, question: &Question) -> Option<Message> {
        let mut last = None;
        for _ in 0..ROUNDS {
            for resolver in self.0.iter() {
                match timeout(ATTEMPT, ask_one(*resolver, question)).await {
                    Ok(Ok(answer)) if settles(answer.metadata.response_code) => return Some(answer),
                    Ok(Ok(answer)) => last = Some(answer),
                    Ok(Err(error)) => tracing::debug!(%resolver, %error, "a resolver failed"),
                    Err(_) => tracing::debug!(%resolver, "a resolver did not answer in time"),
                }
            }
            if last.is_some() {
                break;
            }
        }
        last
    }
}

const fn settles(code: ResponseCode) -> bool {
    !matches!(code, ResponseCode::ServFail | ResponseCode::NotImp | ResponseCode::Refused)
}

async fn ask_one(resolver: SocketAddr, question: &Question) -> io::Result<Message> {
    let answer = by_udp(resolver, question).await?;
    // What was cut is no answer: the whole is asked for, and nothing of the part is used.
    if answer.metadata.truncation { by_tcp(resolver, question).await } else { Ok(answer) }
}

/// The question with an id of our own that nobody can guess. The port is the kernel's choice for each question.
fn request(question: &Question) -> io::Result<(u16, Vec<u8>)> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| io::Error::other("no random number"))?;
    let id = u16::from_be_bytes(id);
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.metadata.checking_disabled = question.asker.checking_disabled;
    message.add_query(question.query.clone());
    let mut edns = Edns::new();
    edns.set_max_payload(OUR_PAYLOAD).set_dnssec_ok(question.asker.edns.is_some_and(|(_, dnssec_ok)| dnssec_ok));
    message.set_edns(edns);
    message.to_vec().map(|bytes| (id, bytes)).map_err(io::Error::other)
}

/// The message, if it answers that very question.
pub(super) fn answers(bytes: &[u8], id: u16, query: &Query) -> Option<Message> {
    let message = Message::from_vec(bytes).ok()?;
    let head = &message.metadata;
    let ours = head.id == id && head.message_type == MessageType::Response && head.op_code == OpCode::Query;
    (ours && message.queries.len() == 1 && message.queries.first() == Some(query)).then_some(message)
}

async fn by_udp(resolver: SocketAddr, question: &Question) -> io::Result<Message> {
    let any: IpAddr = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(resolver).await?;
    let (id, bytes) = request(question)?;
    socket.send(&bytes).await?;
    let mut page = vec![0; OUR_PAYLOAD.into()];
    loop {
        let length = socket.recv(&mut page).await?;
        // Whatever else arrives was not asked for.
        if let Some(answer) = answers(page.get(..length).unwrap_or_default(), id, &question.query) {
            return Ok(answer);
        }
    }
}

async fn by_tcp(resolver: SocketAddr, question: &Question) -> io::Result<Message> {
    let mut stream = TcpStream::connect(resolver).await?;
    let (id, bytes) = request(question)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; length.into()];
    stream.read_exact(&mut answer).await?;
    let problem = || io::Error::new(io::ErrorKind::InvalidData, "the answer is to another question");
    answers(&answer, id, &question.query).ok_or_else(problem)
}
