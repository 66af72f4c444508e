use super::*;

fn fields(of: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in of {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn set(mutation: &HeaderMutation) -> Vec<(String, String)> {
    let header = |option: &crate::envoy_proto::HeaderValueOption| {
        let header = option.header.clone().unwrap();
        (header.key, String::from_utf8(header.raw_value).unwrap())
    };
    mutation.set_headers.iter().map(header).collect()
}

#[test]
fn only_what_differs_is_changed() {
    let before = fields(&[
        ("host", "A.example:80"),
        ("x-key", "one"),
        ("x-key", "two"),
        ("accept", "a"),
        ("accept", "b"),
        ("x-ate-actor", "a/b"),
        ("connection", "close"),
        ("content-length", "1"),
    ]);
    let after = fields(&[("accept", "a"), ("accept", "b"), ("host", "a.example"), ("x-key", "two")]);
    let mutation = mutation(&before, &after);
    assert_eq!(set(&mutation), [(":authority".into(), "a.example".into()), ("x-key".into(), "two".into())]);
    assert_eq!(mutation.remove_headers, ["x-ate-actor"]);
}

// B123
#[test]
fn a_cookie_that_a_rule_replaced_is_sent_once() {
    let before = fields(&[("host", "a.example"), ("cookie", "one=1"), ("cookie", "two=2")]);
    let after = fields(&[("host", "a.example"), ("cookie", "session=s3cret")]);
    assert_eq!(set(&mutation(&before, &after)), [("cookie".into(), "session=s3cret".into())]);
}

fn effect(header: &str) -> Effect {
    use crate::policy::{Credential, CredentialUri};
    let uri = CredentialUri::parse("ate-secret://a.io/b/c").unwrap();
    Effect { header: header.into(), prefix: String::new(), credential: Credential::Secret(uri) }
}

#[test]
fn trailers_are_looked_at_wherever_there_can_be_some() {
    let looked_at = |framing, effects: &[Effect]| {
        let host = Host::parse(b"a.example").unwrap();
        let (rule, kind) = (0, crate::policy::RuleKind::Http);
        let plan = Plan { host, rule, kind, effects: effects.into(), framing, grpc: false, expects_continue: false };
        let to = "192.0.2.1:80".parse().unwrap();
        carried(&plan, to, (&Fields::new(), &Fields::new()), Noted::default()).mode_override.is_some()
    };
    for framing in [Framing::Length(0), Framing::Length(1), Framing::Chunked] {
        assert!(looked_at(framing, &[effect("x-key")]) && !looked_at(framing, &[]), "{framing:?}");
    }
    assert!(!looked_at(Framing::Empty, &[effect("x-key")]));
}

#[test]
fn an_address_is_spelled_as_envoys_filters_read_it() {
    assert_eq!(spelled("192.0.2.1:80".parse().unwrap()), ("192.0.2.1".into(), "80".into()));
    assert_eq!(spelled("[2001:db8::1]:443".parse().unwrap()), ("[2001:db8::1]".into(), "443".into()));
}

#[test]
fn trailers_lose_what_a_rule_replaces() {
    let Some(Response::RequestTrailers(told)) = trailers(&[effect("x-key")]).response else {
        panic!("no word on trailers")
    };
    assert_eq!(told.header_mutation.unwrap().remove_headers, ["x-key"]);
}
