use super::*;

#[test]
fn the_own_namespace_gives_a_usable_socket() {
    let netns = NetNs::open(Path::new("/proc/self/ns/net")).unwrap();
    let socket = Socket::from(netns.tcp_socket(Domain::IPV4).unwrap());
    assert!(socket.nonblocking().unwrap());
    let flags = nix::fcntl::fcntl(&socket, nix::fcntl::FcntlArg::F_GETFD).unwrap();
    assert_eq!(flags & nix::libc::FD_CLOEXEC, nix::libc::FD_CLOEXEC);
}

#[test]
fn what_is_no_network_namespace_is_refused_at_once() {
    assert_eq!(NetNs::open(Path::new("/nonexistent/netns")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(NetNs::open(Path::new("/dev/null")).is_err());
    assert!(NetNs::open(Path::new("/proc/self/ns/uts")).is_err());
}

#[test]
fn a_refused_namespace_does_not_hurt_the_next_socket() {
    assert!(NetNs::open(Path::new("/dev/null")).is_err());
    assert!(NetNs::open(Path::new("/proc/self/ns/net")).is_ok());
}

#[tokio::test]
async fn sockets_are_made_from_asynchronous_code() {
    let netns = tokio::task::spawn_blocking(|| NetNs::open(Path::new("/proc/self/ns/net"))).await.unwrap().unwrap();
    let (a, b) = tokio::join!(netns.tcp_socket_async(Domain::IPV4), netns.tcp_socket_async(Domain::IPV6));
    assert!(a.is_ok() && b.is_ok());
}

#[test]
fn a_connection_that_was_not_redirected_has_no_other_destination() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _client = std::net::TcpStream::connect(address).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let found = original_destination(&accepted);
    assert!(found.is_err() || found.is_ok_and(|found| std::net::SocketAddr::from(found) == address));
}

#[test]
fn a_datagram_socket_can_have_a_larger_buffer() {
    let netns = NetNs::open(Path::new("/proc/self/ns/net")).unwrap();
    let socket = Socket::from(netns.udp_socket(Domain::IPV4).unwrap());
    grow_receive_buffer(&socket, 64 * 1024).unwrap();
    assert!(socket.recv_buffer_size().unwrap() >= 64 * 1024);
    assert_eq!(socket.r#type().unwrap(), Type::DGRAM);
}
