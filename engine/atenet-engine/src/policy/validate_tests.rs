use super::*;
use crate::proto::{ActorJwtSource, AllPorts, HttpRule, HttpRuleEffects, HttpsRule, TlsPassthroughRule};

fn numbers(numbers: &[i32]) -> Option<Ports> {
    Some(Ports { all: None, numbers: numbers.to_vec() })
}

fn http(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    let hostnames = hostnames.iter().map(|name| (*name).to_owned()).collect();
    EgressRule { http: Some(HttpRule { hostnames, ports, effects: None }), ..Default::default() }
}

fn https(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    let hostnames = hostnames.iter().map(|name| (*name).to_owned()).collect();
    EgressRule { https: Some(HttpsRule { hostnames, ports, effects: None }), ..Default::default() }
}

fn passthrough(hostnames: &[&str], ports: Option<Ports>) -> EgressRule {
    let hostnames = hostnames.iter().map(|name| (*name).to_owned()).collect();
    EgressRule { tls_passthrough: Some(TlsPassthroughRule { hostnames, ports }), ..Default::default() }
}

fn replacing(entries: Vec<CredentialHeader>) -> EgressRule {
    let mut rule = https(&["a.example"], None);
    rule.https.as_mut().unwrap().effects = Some(HttpRuleEffects { replace_headers: entries });
    rule
}

fn secret(header: &str, uri: &str) -> CredentialHeader {
    CredentialHeader { header: header.into(), credential_uri: uri.into(), ..Default::default() }
}

const URI: &str = "ate-secret://a.io/b/c";

/// The faults of these rules as `field: message`, the common prefix dropped.
fn faults(rules: Vec<EgressRule>) -> Vec<String> {
    let found = validate(&EgressPolicy { metadata: None, rules });
    found.iter().map(|f| format!("{}: {}", f.field.trim_start_matches("egress_policy.rules"), f.message)).collect()
}

#[track_caller]
fn sole(rules: Vec<EgressRule>, expected: &str) {
    let found = faults(rules);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(expected), "{found:?}");
}

#[test]
fn what_the_contract_allows_passes() {
    let jwt = CredentialHeader {
        header: "x-token".into(),
        prefix: "Bearer ".into(),
        actor_jwt: Some(ActorJwtSource { audiences: vec!["https://api".into()], expiration_seconds: 300 }),
        ..Default::default()
    };
    let rules = vec![
        http(&["a.example", "*.a.example", "*"], None),
        replacing(vec![secret("Authorization", URI), jwt]),
        passthrough(&["a.example"], numbers(&[8443, 1, 65_535])),
        https(&["a.example"], Some(Ports { all: Some(AllPorts {}), numbers: vec![] })),
    ];
    assert_eq!(faults(rules), Vec::<String>::new());
    assert_eq!(faults(vec![]), Vec::<String>::new());
}

#[test]
fn each_fault_names_its_field_and_what_is_allowed() {
    sole(vec![EgressRule::default()], "[0]: must have exactly one of http, https and tls_passthrough");
    sole(vec![http(&[], None)], "[0].http.hostnames: must have 1 to 256 entries, not 0");
    let two = EgressRule { https: https(&["a.example"], None).https, ..http(&["a.example"], None) };
    sole(vec![http(&["b.example"], None), two], "[1]: must have exactly one of");
    sole(vec![https(&["a.example", "A.example"], None)], "[0].https.hostnames[1]: must be in lower case");
    sole(vec![https(&["*.com"], None)], "[0].https.hostnames[0]: is too wide");
    sole(vec![passthrough(&["a.example"], None)], "[0].tls_passthrough.ports: is required");
    sole(vec![http(&["a.example"], numbers(&[]))], "[0].http.ports: must have numbers or all");
    let both = Some(Ports { all: Some(AllPorts {}), numbers: vec![80] });
    sole(vec![http(&["a.example"], both)], "[0].http.ports: must have either all or numbers, not both");
    sole(vec![http(&["a.example"], numbers(&[80, 0]))], "[0].http.ports.numbers[1]: must be from 1 to 65535, not 0");
    sole(vec![http(&["a.example"], numbers(&[65_536]))], "[0].http.ports.numbers[0]: must be from 1 to 65535");
    sole(vec![http(&["a.example"], numbers(&[-1]))], "[0].http.ports.numbers[0]: must be from 1 to 65535");
    sole(vec![http(&["a.example"], numbers(&[80, 81, 80]))], "[0].http.ports.numbers[2]: must not repeat 80");
    let many: Vec<i32> = (1..=17).collect();
    sole(vec![http(&["a.example"], numbers(&many))], "[0].http.ports.numbers: must have at most 16 entries, not 17");
}

#[test]
fn each_fault_of_an_effect_names_its_field() {
    let at = "[0].https.effects.replace_headers[0]";
    let entry = |change: fn(&mut CredentialHeader)| {
        let mut entry = secret("x-a", URI);
        change(&mut entry);
        vec![replacing(vec![entry])]
    };
    let jwt = |audiences: Vec<String>, expiration_seconds: i32| {
        let source = ActorJwtSource { audiences, expiration_seconds };
        vec![replacing(vec![CredentialHeader { header: "x-a".into(), actor_jwt: Some(source), ..Default::default() }])]
    };
    sole(entry(|e| e.header = "Host".into()), &format!("{at}.header: must not be a protected name"));
    sole(entry(|e| e.header = "a b".into()), &format!("{at}.header: must be a header name"));
    sole(entry(|e| e.prefix = "a\r\nb".into()), &format!("{at}.prefix: must be at most 256"));
    sole(entry(|e| e.credential_uri = "http://a".into()), &format!("{at}.credential_uri: must start with"));
    sole(entry(|e| e.credential_uri.clear()), &format!("{at}: must have exactly one of credential_uri and actor_jwt"));
    let both = |e: &mut CredentialHeader| e.actor_jwt = Some(ActorJwtSource::default());
    sole(entry(both), &format!("{at}: must have exactly one of credential_uri and actor_jwt"));
    sole(jwt(vec![], 300), &format!("{at}.actor_jwt.audiences: must name 1 to 16"));
    sole(jwt(vec!["a".into(); 17], 300), &format!("{at}.actor_jwt.audiences: must name 1 to 16"));
    sole(jwt(vec!["a".into(), String::new()], 300), &format!("{at}.actor_jwt.audiences[1]: must have 1 to 512"));
    sole(jwt(vec!["a".repeat(513)], 300), &format!("{at}.actor_jwt.audiences[0]: must have 1 to 512"));
    sole(jwt(vec!["a".into()], 299), &format!("{at}.actor_jwt.expiration_seconds: must be from 300 to 3600"));
    sole(jwt(vec!["a".into()], 3601), &format!("{at}.actor_jwt.expiration_seconds: must be from 300 to 3600"));
    let twice = vec![replacing(vec![secret("x-a", URI), secret("X-A", URI)])];
    sole(twice, "[0].https.effects.replace_headers[1].header: must not repeat");
    let many = (0..17).map(|n| secret(&format!("x-{n}"), URI)).collect();
    sole(vec![replacing(many)], "[0].https.effects.replace_headers: must have at most 16 entries, not 17");
}

#[test]
fn a_pattern_stands_once_on_each_port_defaults_filled_in() {
    let repeat =
        "[1].https.hostnames[0]: must not repeat the pattern of egress_policy.rules[0].https.hostnames[0] on port 443";
    sole(vec![https(&["a.example"], None), https(&["a.example"], numbers(&[443]))], repeat);
    let exempt = vec![https(&["a.example"], None), passthrough(&["a.example"], numbers(&[443]))];
    sole(exempt, "[1].tls_passthrough.hostnames[0]: must not repeat");
    sole(vec![http(&["a.example", "a.example"], None)], "[0].http.hostnames[1]: must not repeat");
    let all = || Some(Ports { all: Some(AllPorts {}), numbers: vec![] });
    sole(vec![http(&["*"], all()), http(&["*"], all())], "[1].http.hostnames[0]: must not repeat");
    // A listed port beside all ports is no repetition: it is the more specific one.
    assert_eq!(faults(vec![http(&["*"], all()), http(&["*"], None), https(&["*"], None)]), Vec::<String>::new());
}

#[test]
fn sizes_are_bounded_and_so_is_the_report() {
    let rules = (0..257).map(|n| http(&[&format!("a{n}.example")], None)).collect();
    sole(rules, ": must have at most 256 entries, not 257");
    let names: Vec<String> = (0..257).map(|n| format!("a{n}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    sole(vec![http(&names, None)], "[0].http.hostnames: must have 1 to 256 entries, not 257");
    let bad = ["A"; 256];
    assert_eq!(faults(vec![http(&bad, None)]).len(), MAX_FAULTS);
}
