//! What holds for any input, tried on bounded random ones.

use proptest::prelude::*;

use super::*;
use crate::proto::{EgressPolicy, EgressRule, HttpRule, HttpsRule, Ports, TlsPassthroughRule};

fn bounded() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

fn hostish() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        "[a-cA-C0-9.:%@\\[\\]x_-]{0,40}".prop_map(String::into_bytes),
        "([a-zA-Z0-9-]{1,8}\\.){0,5}[a-z]{1,8}\\.?(:[0-9]{1,6})?".prop_map(String::into_bytes),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]\\.[a-c]\\.t", "\\*\\.[a-c]\\.t", Just("*".to_owned()), "[a-c.*:A]{0,6}"]
}

fn rule() -> impl Strategy<Value = EgressRule> {
    let ports = proptest::option::of(proptest::collection::vec(-1..5i32, 0..3))
        .prop_map(|numbers| numbers.map(|numbers| Ports { all: None, numbers }));
    (0..4u8, proptest::collection::vec(pattern(), 0..3), ports).prop_map(|(kind, hostnames, ports)| match kind {
        0 => EgressRule { http: Some(HttpRule { hostnames, ports, effects: None }), ..Default::default() },
        1 => EgressRule { https: Some(HttpsRule { hostnames, ports, effects: None }), ..Default::default() },
        2 => EgressRule { tls_passthrough: Some(TlsPassthroughRule { hostnames, ports }), ..Default::default() },
        _ => EgressRule::default(),
    })
}

/// The rule of the table E-09, straight from its words: best rank wins, then the earlier rule.
fn by_the_words(policy: &EgressPolicy, layer: Layer, name: &str, port: u16) -> Option<usize> {
    let mut best: Option<((u8, u8), usize)> = None;
    for (at, rule) in policy.rules.iter().enumerate() {
        let (hostnames, ports, of, default) = match (&rule.http, &rule.https, &rule.tls_passthrough) {
            (Some(r), _, _) => (&r.hostnames, &r.ports, Layer::Http, Some(80)),
            (_, Some(r), _) => (&r.hostnames, &r.ports, Layer::Tls, Some(443)),
            (_, _, Some(r)) => (&r.hostnames, &r.ports, Layer::Tls, None),
            _ => continue,
        };
        let numbers = match ports {
            None => default.into_iter().collect(),
            Some(ports) if ports.numbers.iter().all(|n| (1..=65_535).contains(n)) => ports.numbers.clone(),
            Some(_) => vec![],
        };
        if of != layer || !numbers.contains(&i32::from(port)) {
            continue;
        }
        for text in hostnames {
            let parent = name.split_once('.').map(|(_, parent)| parent);
            let rank = match text.strip_prefix("*.") {
                _ if text == "*" => 2,
                Some(suffix) if Some(suffix) == parent => 1,
                None if text == name => 0,
                _ => continue,
            };
            if best.is_none_or(|(other, _)| (rank, 0) < other) {
                best = Some(((rank, 0), at));
            }
        }
    }
    best.map(|(_, at)| at)
}

proptest! {
    #![proptest_config(bounded())]

    #[test]
    fn no_bytes_panic_and_what_is_read_is_read_the_same_again(bytes in hostish()) {
        if let Ok(host) = Host::parse(&bytes) {
            prop_assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host.clone()));
            prop_assert_eq!(Authority::parse(&bytes), Ok(Authority { host, port: None }));
        }
        if let Ok(authority) = Authority::parse(&bytes) {
            prop_assert_eq!(Host::parse(authority.host.to_string().as_bytes()), Ok(authority.host));
        }
    }

    #[test]
    fn a_name_that_is_read_is_a_pattern_of_itself(bytes in hostish()) {
        if let Ok(Host::Name(name)) = Host::parse(&bytes) {
            prop_assert_eq!(Pattern::parse(&name), Ok(Pattern::Exact(name.to_string())));
        }
    }

    #[test]
    fn no_text_panics_the_grammars(text in any::<String>()) {
        let _ = (Pattern::parse(&text), CredentialUri::parse(&text), check_header(&text));
    }

    #[test]
    fn the_matcher_says_what_the_words_of_the_table_say(
        rules in proptest::collection::vec(rule(), 0..8),
        name in "[a-c]\\.[a-c]\\.t|[a-c]\\.t",
        port in prop_oneof![Just(80u16), Just(443), 1..5u16],
        tls in any::<bool>(),
    ) {
        let policy = EgressPolicy { metadata: None, rules };
        let layer = if tls { Layer::Tls } else { Layer::Http };
        let host = Host::parse(name.as_bytes()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let decided = Matcher::new(&policy).decide(layer, &host, port).ok().map(|decision| decision.rule);
        prop_assert_eq!(decided, by_the_words(&policy, layer, &name, port));
        let _ = validate(&policy);
    }
}
