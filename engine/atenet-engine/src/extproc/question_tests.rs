use std::collections::HashMap;

use prost::Message;
use prost_types::{Struct, value::Kind};

use super::*;
use crate::envoy_proto::{HeaderMap, HeaderValue, HttpHeaders, ProcessingRequest};

fn message(chain: &str, headers: &[(&str, &str)], outer: &[(&str, &str)]) -> ProcessingRequest {
    let value = |text: &str| prost_types::Value { kind: Some(Kind::StringValue(text.into())) };
    let mut fields: std::collections::BTreeMap<_, _> =
        outer.iter().map(|(name, text)| (format!("filter_state['{name}']"), value(text))).collect();
    fields.insert(CHAIN.into(), value(chain));
    let headers = headers.iter().map(|(key, text)| HeaderValue {
        key: (*key).into(),
        value: String::new(),
        raw_value: text.as_bytes().to_vec(),
    });
    let headers = Some(HeaderMap { headers: headers.collect() });
    ProcessingRequest {
        request_headers: Some(HttpHeaders { headers, ..HttpHeaders::default() }),
        attributes: HashMap::from([("envoy.filters.http.ext_proc".into(), Struct { fields })]),
        ..ProcessingRequest::default()
    }
}

fn ask(chain: &str, headers: &[(&str, &str)], outer: &[(&str, &str)]) -> Result<Ask, Refusal> {
    Question::read(&message(chain, headers, outer).encode_to_vec()).unwrap().unwrap().ask()
}

fn actor(text: &str) -> ActorRef {
    ActorRef::parse(text.as_bytes()).unwrap()
}

const GET: [(&str, &str); 3] = [(":method", "GET"), (":authority", "any:81"), (":path", "/a?b=secret")];

fn get<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&GET, more].concat()
}

#[test]
fn a_plain_request_goes_to_port_80_whatever_its_host_says() {
    let found = ask("ingress", &get(&[("ate-target-actor", "team/a")]), &[]);
    assert_eq!(found, Ok(Ask::Route { actor: actor("team/a"), port: 80 }));
}

#[test]
fn no_target_a_bad_one_or_two_are_refused() {
    for targets in [&[][..], &["team/a", "team/a"], &["team/a", "team/b"], &["team"], &["team/a\t"], &["Team/a"]] {
        let headers: Vec<_> = targets.iter().map(|target| ("ate-target-actor", *target)).collect();
        assert_eq!(ask("ingress", &get(&headers), &[]), Err(Refusal::BadTarget), "{targets:?}");
    }
}

#[test]
fn two_hosts_are_refused() {
    let headers = [(":method", "GET"), (":authority", "x,y"), ("ate-target-actor", "team/a")];
    assert_eq!(ask("ingress", &headers, &[]), Err(Refusal::BadRequest));
}

#[test]
fn connect_names_the_actor_and_the_port() {
    let connect = |authority| [(":method", "CONNECT"), (":authority", authority), ("ate-target-actor", "team/a")];
    assert_eq!(ask("connect", &connect("any:7001"), &[]), Ok(Ask::Open { actor: actor("team/a"), port: 7001 }));
    for authority in ["any", "any:0", "any:65536", "any:"] {
        assert_eq!(ask("connect", &connect(authority), &[]), Err(Refusal::BadConnectPort), "{authority}");
    }
    assert_eq!(ask("connect", &connect("any:1")[..2], &[]), Err(Refusal::BadTarget));
}

#[test]
fn each_listener_refuses_the_others_method() {
    let target = ("ate-target-actor", "team/a");
    assert_eq!(ask("connect", &get(&[target]), &[]), Err(Refusal::MethodNotAllowed));
    for chain in ["ingress", "connected"] {
        let headers = [(":method", "CONNECT"), (":authority", "a:80"), target];
        assert_eq!(ask(chain, &headers, &[]), Err(Refusal::MethodNotAllowed), "{chain}");
    }
}

#[test]
fn inside_a_connect_only_the_connect_counts() {
    let outer = [("x-ate-outer-actor", "team/a"), ("x-ate-outer-port", "7001")];
    let found = ask("connected", &get(&[("ate-target-actor", "team/b")]), &outer);
    assert_eq!(found, Ok(Ask::Route { actor: actor("team/a"), port: 7001 }));
    assert_eq!(ask("connected", &GET, &[]), Err(Refusal::Internal));
}

#[test]
fn an_unknown_chain_is_no_open_door() {
    assert_eq!(ask("egress", &get(&[("ate-target-actor", "team/a")]), &[]), Err(Refusal::Internal));
}

#[test]
fn paths_lose_their_query_and_grpc_is_seen() {
    let grpc = message("ingress", &get(&[("content-type", "application/grpc+proto")]), &[]).encode_to_vec();
    let question = Question::read(&grpc).unwrap().unwrap();
    assert_eq!((question.path, question.grpc), ("/a", true));
    for other in ["application/grpc-web", "application/json", "application/grpcx"] {
        let message = message("ingress", &get(&[("content-type", other)]), &[]).encode_to_vec();
        assert!(!Question::read(&message).unwrap().unwrap().grpc, "{other}");
    }
}

#[test]
fn a_message_that_is_cut_is_malformed_and_one_without_headers_is_no_question() {
    let whole = message("ingress", &get(&[("ate-target-actor", "team/a")]), &[]).encode_to_vec();
    assert!(Question::read(&whole[..whole.len() - 1]).is_err());
    let none = ProcessingRequest { request_headers: None, ..ProcessingRequest::decode(&whole[..]).unwrap() };
    assert!(Question::read(&none.encode_to_vec()).unwrap().is_none());
}
