//! The one validator of egress rules: every fault with its field and what is allowed.

use std::collections::{HashMap, HashSet};

use super::effect::Effect;
use super::matcher::{Coverage, RuleKind, View};
use super::pattern::Pattern;
use crate::proto::{CredentialHeader, EgressPolicy, EgressRule, Ports};

/// Rules in a policy at most.
pub const MAX_RULES: usize = 256;
const MAX_HOSTNAMES: usize = 256;
const MAX_PORTS: usize = 16;
const MAX_REPLACED: usize = 16;
/// Faults reported at most: nobody reads more, and input may be hostile.
const MAX_FAULTS: usize = 100;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Such as `egress_policy.rules[3].https.hostnames[0]`.
    pub field: String,
    /// What it must be: `must be in lower case`.
    pub message: String,
}

/// What is wrong with a policy's rules, in their order, at most 100 faults; empty: nothing. Its metadata is not looked at.
#[must_use]
pub fn validate(policy: &EgressPolicy) -> Vec<Fault> {
    let mut faults = Faults::default();
    if policy.rules.len() > MAX_RULES {
        faults.add("egress_policy.rules", format!("must have at most {MAX_RULES} entries, not {}", policy.rules.len()));
        return faults.0;
    }
    let mut taken = Taken::default();
    for (at, rule) in policy.rules.iter().enumerate() {
        check_rule(&format!("egress_policy.rules[{at}]"), rule, &mut taken, &mut faults);
    }
    faults.0
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(Fault { field: field.into(), message: message.into() });
        }
    }
}

/// Which field claims a pattern on a port (`None`: on all ports), by layer.
type Taken = HashMap<(super::Layer, Pattern, Option<u16>), String>;

fn check_rule(path: &str, rule: &EgressRule, taken: &mut Taken, faults: &mut Faults) {
    let Some(view) = View::of(rule) else {
        return faults.add(path, "must have exactly one of http, https and tls_passthrough");
    };
    let path = format!("{path}.{}", view.kind.as_str());
    check_ports(&format!("{path}.ports"), view.kind, view.ports, faults);
    check_hostnames(&path, &view, taken, faults);
    if let Some(effects) = view.effects {
        check_effects(&format!("{path}.effects.replace_headers"), &effects.replace_headers, faults);
    }
}

fn check_ports(path: &str, kind: RuleKind, ports: Option<&Ports>, faults: &mut Faults) {
    let Some(ports) = ports else {
        if kind.default_port().is_none() {
            faults.add(path, "is required for tls_passthrough: numbers or all");
        }
        return;
    };
    let numbers = format!("{path}.numbers");
    match (&ports.all, ports.numbers.len()) {
        (Some(_), 0) => {}
        (Some(_), _) => faults.add(path, "must have either all or numbers, not both"),
        (None, 0) => faults.add(path, "must have numbers or all"),
        (None, n) if n > MAX_PORTS => faults.add(&numbers, format!("must have at most {MAX_PORTS} entries, not {n}")),
        (None, _) => {
            let mut seen = HashSet::new();
            for (at, port) in ports.numbers.iter().enumerate() {
                if !(1..=65_535).contains(port) {
                    faults.add(format!("{numbers}[{at}]"), format!("must be from 1 to 65535, not {port}"));
                } else if !seen.insert(port) {
                    faults.add(format!("{numbers}[{at}]"), format!("must not repeat {port}"));
                }
            }
        }
    }
}

fn check_hostnames(path: &str, view: &View<'_>, taken: &mut Taken, faults: &mut Faults) {
    let path = format!("{path}.hostnames");
    let count = view.hostnames.len();
    if count == 0 || count > MAX_HOSTNAMES {
        return faults.add(path, format!("must have 1 to {MAX_HOSTNAMES} entries, not {count}"));
    }
    let coverage = Coverage::of(view.kind, view.ports);
    for (at, text) in view.hostnames.iter().enumerate() {
        let field = format!("{path}[{at}]");
        match Pattern::parse(text).and_then(|pattern| pattern.check_width().map(|()| pattern)) {
            Err(error) => faults.add(field, error.to_string()),
            Ok(pattern) => {
                if let Some(coverage) = &coverage {
                    claim(&field, view.kind, &pattern, coverage, taken, faults);
                }
            }
        }
    }
}

/// Two rules for one pattern and port would leave it to their order which one counts.
fn claim(field: &str, kind: RuleKind, pattern: &Pattern, coverage: &Coverage, taken: &mut Taken, faults: &mut Faults) {
    let ports: Vec<Option<u16>> = match coverage {
        Coverage::All => vec![None],
        // A repeated number is the ports' fault, and reported there.
        Coverage::Numbers(numbers) => numbers.iter().copied().collect::<HashSet<_>>().into_iter().map(Some).collect(),
    };
    for port in ports {
        let on = port.map_or_else(|| "all ports".to_owned(), |port| format!("port {port}"));
        match taken.entry((kind.layer(), pattern.clone(), port)) {
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(field.to_owned());
            }
            std::collections::hash_map::Entry::Occupied(by) => {
                return faults.add(field, format!("must not repeat the pattern of {} on {on}", by.get()));
            }
        }
    }
}

fn check_effects(path: &str, entries: &[CredentialHeader], faults: &mut Faults) {
    if entries.len() > MAX_REPLACED {
        return faults.add(path, format!("must have at most {MAX_REPLACED} entries, not {}", entries.len()));
    }
    let mut seen = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        if let Err(error) = Effect::parse(entry) {
            let (below, message) = error.split();
            faults.add(format!("{path}[{at}]{below}"), message);
        }
        if !seen.insert(entry.header.to_ascii_lowercase()) {
            faults.add(format!("{path}[{at}].header"), "must not repeat a header of this rule");
        }
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
