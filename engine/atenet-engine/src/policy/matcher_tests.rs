use super::*;
use crate::proto::{AllPorts, CredentialHeader, HttpRule, HttpsRule, TlsPassthroughRule};

fn numbers(numbers: &[i32]) -> Option<Ports> {
    Some(Ports { all: None, numbers: numbers.to_vec() })
}

fn all() -> Option<Ports> {
    Some(Ports { all: Some(AllPorts {}), numbers: vec![] })
}

fn names(hostnames: &[&str]) -> Vec<String> {
    hostnames.iter().map(|name| (*name).to_owned()).collect()
}

fn http(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    EgressRule { http: Some(HttpRule { hostnames: names(hostnames), ports, effects: None }), ..Default::default() }
}

fn https(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    EgressRule { https: Some(HttpsRule { hostnames: names(hostnames), ports, effects: None }), ..Default::default() }
}

fn passthrough(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    let rule = TlsPassthroughRule { hostnames: names(hostnames), ports };
    EgressRule { tls_passthrough: Some(rule), ..Default::default() }
}

fn matcher(rules: Vec<EgressRule>) -> Matcher {
    Matcher::new(&EgressPolicy { metadata: None, rules })
}

fn decide(matcher: &Matcher, layer: Layer, host: &str, port: u16) -> Result<usize, Denial> {
    let host = Host::parse(host.as_bytes()).unwrap();
    matcher.decide(layer, &host, port).map(|decision| decision.rule)
}

#[test]
fn nothing_passes_without_a_rule() {
    assert_eq!(decide(&matcher(vec![]), Layer::Http, "a.example", 80), Err(Denial::NoPolicy));
    assert_eq!(decide(&matcher(vec![http(&["b.example"], None)]), Layer::Http, "a.example", 80), Err(Denial::NoRule));
}

#[test]
fn defaults_are_80_and_443_and_none_for_passthrough() {
    let m = matcher(vec![http(&["a.example"], None), https(&["a.example"], None), passthrough(&["b.example"], None)]);
    assert_eq!(decide(&m, Layer::Http, "a.example", 80), Ok(0));
    assert_eq!(decide(&m, Layer::Http, "a.example", 8080), Err(Denial::Port));
    assert_eq!(decide(&m, Layer::Tls, "a.example", 443), Ok(1));
    assert_eq!(decide(&m, Layer::Tls, "a.example", 80), Err(Denial::Port));
    assert_eq!(decide(&m, Layer::Tls, "b.example", 443), Err(Denial::NoRule));
}

#[test]
fn the_name_counts_before_the_port_and_the_order_last() {
    let m = matcher(vec![
        https(&["*"], numbers(&[443])),
        https(&["*.example.com"], numbers(&[443])),
        https(&["a.example.com"], all()),
        https(&["a.example.com"], numbers(&[8443])),
        https(&["a.example.com"], all()),
    ]);
    assert_eq!(decide(&m, Layer::Tls, "a.example.com", 443), Ok(2));
    assert_eq!(decide(&m, Layer::Tls, "a.example.com", 8443), Ok(3));
    assert_eq!(decide(&m, Layer::Tls, "b.example.com", 443), Ok(1));
    assert_eq!(decide(&m, Layer::Tls, "b.example.com", 8443), Err(Denial::Port));
    assert_eq!(decide(&m, Layer::Tls, "example.com", 443), Ok(0));
}

#[test]
fn a_less_specific_rule_decides_where_the_specific_one_lacks_the_port() {
    let m = matcher(vec![http(&["a.example"], numbers(&[8080])), http(&["*"], None)]);
    assert_eq!(decide(&m, Layer::Http, "a.example", 80), Ok(1));
}

// B103
#[test]
fn a_star_covers_exactly_one_label_and_no_look_alike() {
    let m = matcher(vec![https(&["*.example.com"], None)]);
    assert_eq!(decide(&m, Layer::Tls, "a.example.com", 443), Ok(0));
    for name in ["example.com", "a.b.example.com", "evilexample.com", "example.com.evil.net", "a.example.com.evil.net"]
    {
        assert_eq!(decide(&m, Layer::Tls, name, 443), Err(Denial::NoRule), "{name}");
    }
}

#[test]
fn addresses_are_covered_by_a_lone_star_only() {
    let m = matcher(vec![http(&["a.example"], None), https(&["*"], None)]);
    assert_eq!(decide(&m, Layer::Http, "10.0.0.1", 80), Err(Denial::NoRule));
    assert_eq!(decide(&m, Layer::Tls, "10.0.0.1", 443), Ok(1));
    assert_eq!(decide(&m, Layer::Tls, "[2001:db8::1]", 443), Ok(1));
}

#[test]
fn intercept_and_passthrough_compete_by_specificity() {
    let m = matcher(vec![https(&["*.example.com"], None), passthrough(&["pinned.example.com"], numbers(&[443]))]);
    let kind = |name: &str| m.decide(Layer::Tls, &Host::parse(name.as_bytes()).unwrap(), 443).unwrap().kind;
    assert_eq!(kind("a.example.com"), RuleKind::Https);
    assert_eq!(kind("pinned.example.com"), RuleKind::TlsPassthrough);
}

#[test]
fn a_malformed_rule_covers_nothing() {
    let both = EgressRule { https: https(&["a.example"], None).https, ..http(&["a.example"], None) };
    let m = matcher(vec![
        both,
        EgressRule::default(),
        http(&["A.example", "a.example.", "a.example:80"], None),
        http(&["a.example"], numbers(&[0])),
        http(&["a.example"], numbers(&[80, 65_536])),
        http(&["a.example"], numbers(&[])),
        http(&["a.example"], Some(Ports { all: Some(AllPorts {}), numbers: vec![80] })),
    ]);
    assert_eq!(decide(&m, Layer::Http, "a.example", 80), Err(Denial::NoRule));
}

// B125: refused again at use
#[test]
fn a_credential_that_cannot_be_set_is_an_error_of_the_decision() {
    let mut rule = http(&["a.example"], None);
    let entry = CredentialHeader {
        header: "host".into(),
        credential_uri: "ate-secret://a.io/b/c".into(),
        ..Default::default()
    };
    rule.http.as_mut().unwrap().effects = Some(HttpRuleEffects { replace_headers: vec![entry] });
    let m = matcher(vec![rule]);
    let decision = m.decide(Layer::Http, &Host::parse(b"a.example").unwrap(), 80).unwrap();
    assert_eq!(decision.effects().unwrap_err().0, 0);
}

#[test]
fn a_covered_name_is_covered_whatever_layer_and_port() {
    let m = matcher(vec![passthrough(&["a.example"], numbers(&[22])), http(&["*.b.example"], None)]);
    let covers = |name: &str| m.covers(&Host::parse(name.as_bytes()).unwrap());
    assert!(covers("a.example") && covers("x.b.example"));
    assert!(!covers("b.example") && !covers("c.example"));
}
