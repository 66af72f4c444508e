//! Where an origin's name leads: one look-up, by the system's resolver or by the gateway's own name servers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ServerOrderingStrategy,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver, TokioResolver};

use crate::error::EngineError;

/// Answers that are remembered, each for as long as it says and at most for so long.
const REMEMBERED: u64 = 8_192;
const KEPT: Duration = Duration::from_secs(60);
/// That a name is not there is news sooner.
const MISSING_KEPT: Duration = Duration::from_secs(5);
/// One question to one server.
const QUESTION: Duration = Duration::from_secs(2);
/// Questions in the air to one server.
const IN_THE_AIR: usize = 1_024;

pub(super) enum Names {
    /// What the machine's own programs use. Its hosts file counts only where the C library finds a name with a final
    /// dot in it, which glibc does not.
    System,
    Servers(Box<TokioResolver>),
}

impl Names {
    /// No server: the system's resolver. Must run inside a tokio runtime.
    pub(super) fn new(servers: &[SocketAddr]) -> Result<Self, EngineError> {
        if servers.is_empty() {
            return Ok(Self::System);
        }
        let configured =
            servers.iter().map(|server| NameServerConfig::new(server.ip(), true, connections(server.port())));
        // No search list: a name is what the policy says, and never another one below the machine's domain.
        let config = ResolverConfig::from_parts(None, Vec::new(), configured.collect());
        let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Never;
        options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
        options.num_concurrent_reqs = 1;
        options.timeout = QUESTION;
        options.try_tcp_on_error = true;
        options.max_active_requests = IN_THE_AIR;
        options.cache_size = REMEMBERED;
        options.positive_max_ttl = Some(KEPT);
        options.negative_max_ttl = Some(MISSING_KEPT);
        let resolver = builder.build().map_err(|error| EngineError::Names(error.to_string()))?;
        Ok(Self::Servers(Box::new(resolver)))
    }

    /// All addresses of a name that stands as in a policy: lower case, no final dot. The error is for the log.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        // With its final dot the name is whole: no search list makes another one of it.
        let absolute = format!("{name}.");
        match self {
            Self::System => {
                let found = tokio::net::lookup_host((absolute, 0)).await.map_err(|error| error.to_string())?;
                Ok(found.map(|address| address.ip().to_canonical()).collect())
            }
            Self::Servers(resolver) => {
                let found = resolver.lookup_ip(absolute).await.map_err(|error| error.to_string())?;
                Ok(found.iter().map(|address| address.to_canonical()).collect())
            }
        }
    }
}

fn connections(port: u16) -> Vec<ConnectionConfig> {
    let mut both = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut both {
        connection.port = port;
    }
    both
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::ToSocketAddrs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::UdpSocket;

    use super::*;

    /// Answers each question for an A record with these addresses and for any other with none.
    async fn server(addresses: &'static [[u8; 4]]) -> (SocketAddr, Arc<AtomicUsize>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (bound, asked) = (socket.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = asked.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 1_500];
            loop {
                let (read, from) = socket.recv_from(&mut buffer).await.unwrap();
                let query = &buffer[..read];
                let end = 12 + query[12..].iter().position(|b| *b == 0).unwrap() + 5;
                let is_a = query[end - 4..end - 2] == [0, 1];
                let answers: &[[u8; 4]] = if is_a { addresses } else { &[] };
                counted.fetch_add(usize::from(is_a), Ordering::Relaxed);
                let mut answer = [&query[..2], &[0x81, 0x80, 0, 1, 0], &[answers.len() as u8], &[0; 4]].concat();
                answer.extend_from_slice(&query[12..end]);
                for address in answers {
                    answer.extend_from_slice(&[0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]);
                    answer.extend_from_slice(address);
                }
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        (bound, asked)
    }

    #[tokio::test]
    async fn a_server_of_ones_own_is_asked_and_its_answer_kept_while_it_holds() {
        let (address, asked) = server(&[[192, 0, 2, 1], [192, 0, 2, 2]]).await;
        let names = Names::new(&[address]).unwrap();
        let expected: Vec<IpAddr> = vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
        for _ in 0..3 {
            assert_eq!(names.resolve("host.test.example").await.unwrap(), expected);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_an_error() {
        let (address, _) = server(&[]).await;
        assert!(Names::new(&[address]).unwrap().resolve("host.test.example").await.is_err());
    }

    #[tokio::test]
    async fn without_servers_the_system_is_asked() {
        // Whether the system knows this name with its final dot depends on the machine.
        let whole = ("localhost.", 0).to_socket_addrs().ok();
        let expected = whole.map(|found| found.map(|address| address.ip().to_canonical()).collect::<BTreeSet<_>>());
        let found = Names::new(&[]).unwrap().resolve("localhost").await.ok();
        assert_eq!(found.map(BTreeSet::from_iter), expected);
    }
}
