//! A policy compiled for decisions: hash look-ups by name, whose cost does not grow with the number of rules.
//!
//! Of the rules that cover both name and port, an exact name wins over `*.suffix`, that over `*`; then a listed port
//! over all ports; then the earlier rule (row E-09).

use std::collections::HashMap;
use std::sync::Arc;

use super::effect::{Effect, EffectError};
use super::host::Host;
use super::pattern::Pattern;
use crate::proto::{EgressPolicy, EgressRule, HttpRuleEffects, Ports};

/// What the first bytes of a connection showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Cleartext HTTP: `http` rules.
    Http,
    /// TLS: `https` and `tls_passthrough` rules together.
    Tls,
}

impl Layer {
    /// As it is called in answers to people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tls => "tls",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleKind {
    Http,
    Https,
    TlsPassthrough,
}

impl RuleKind {
    /// Its field in the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::TlsPassthrough => "tls_passthrough",
        }
    }

    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::Http => Layer::Http,
            Self::Https | Self::TlsPassthrough => Layer::Tls,
        }
    }

    /// The port that a rule without ports is for; none: such a rule covers nothing.
    pub(super) const fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::TlsPassthrough => None,
        }
    }
}

/// Why nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Denial {
    /// The actor has no policy, or its policy has no rule.
    NoPolicy,
    /// No rule of this layer covers the name.
    NoRule,
    /// Rules cover the name, but none of them this port.
    Port,
}

impl Denial {
    /// The token in `ate-reason`, logs and metrics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoPolicy => "no-egress-policy",
            Self::NoRule => "no-egress-rule",
            Self::Port => "egress-port-denied",
        }
    }
}

/// A rule that lets something pass, and what it does to requests.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// Its place in the policy, from 0.
    pub rule: usize,
    pub kind: RuleKind,
    effects: &'a Effects,
}

type Effects = Result<Arc<[Effect]>, (usize, EffectError)>;

impl Decision<'_> {
    /// The headers to replace, in the rule's order. An error: the entry that no validator should have let through,
    /// so the request must fail, never pass bare.
    pub fn effects(&self) -> Result<Arc<[Effect]>, (usize, EffectError)> {
        self.effects.clone()
    }
}

struct Rule {
    kind: RuleKind,
    effects: Effects,
}

/// Which rule decides, for each port of one pattern.
#[derive(Default)]
struct ByPort {
    /// Sorted by port.
    numbers: Vec<(u16, u32)>,
    all: Option<u32>,
}

impl ByPort {
    fn add(&mut self, ports: &Coverage, rule: u32) {
        match ports {
            Coverage::All => {
                self.all.get_or_insert(rule);
            }
            Coverage::Numbers(numbers) => {
                for port in numbers {
                    if let Err(at) = self.numbers.binary_search_by_key(port, |(port, _)| *port) {
                        self.numbers.insert(at, (*port, rule));
                    }
                }
            }
        }
    }

    fn get(&self, port: u16) -> Option<u32> {
        let listed = self.numbers.binary_search_by_key(&port, |(port, _)| *port).ok();
        listed.and_then(|at| self.numbers.get(at)).map(|(_, rule)| *rule).or(self.all)
    }

    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.all.is_none()
    }
}

#[derive(Default)]
struct Names {
    exact: HashMap<String, ByPort>,
    suffix: HashMap<String, ByPort>,
    any: ByPort,
}

impl Names {
    fn add(&mut self, pattern: Pattern, ports: &Coverage, rule: u32) {
        let by_port = match pattern {
            Pattern::Exact(name) => self.exact.entry(name).or_default(),
            Pattern::Suffix(name) => self.suffix.entry(name).or_default(),
            Pattern::Any => &mut self.any,
        };
        by_port.add(ports, rule);
    }

    /// What covers the host, the most specific first.
    fn covering(&self, host: &Host) -> impl Iterator<Item = &ByPort> {
        let exact = host.name().and_then(|name| self.exact.get(name));
        let parent = host.name().and_then(|name| name.split_once('.')).map(|(_, parent)| parent);
        let suffix = parent.and_then(|parent| self.suffix.get(parent));
        exact.into_iter().chain(suffix).chain((!self.any.is_empty()).then_some(&self.any))
    }
}

/// The ports of one rule, its default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Coverage {
    All,
    Numbers(Vec<u16>),
}

impl Coverage {
    /// `None`: ports that no validator lets through; such a rule covers nothing.
    pub(super) fn of(kind: RuleKind, ports: Option<&Ports>) -> Option<Self> {
        let Some(ports) = ports else {
            return kind.default_port().map(|port| Self::Numbers(vec![port]));
        };
        if ports.all.is_some() {
            return ports.numbers.is_empty().then_some(Self::All);
        }
        let numbers: Option<Vec<u16>> =
            ports.numbers.iter().map(|n| u16::try_from(*n).ok().filter(|n| *n > 0)).collect();
        numbers.filter(|numbers| !numbers.is_empty()).map(Self::Numbers)
    }
}

/// One rule of the contract, its three kinds told apart.
pub(super) struct View<'a> {
    pub(super) kind: RuleKind,
    pub(super) hostnames: &'a [String],
    pub(super) ports: Option<&'a Ports>,
    pub(super) effects: Option<&'a HttpRuleEffects>,
}

impl<'a> View<'a> {
    /// `None`: not exactly one kind is set.
    pub(super) fn of(rule: &'a EgressRule) -> Option<Self> {
        match (&rule.http, &rule.https, &rule.tls_passthrough) {
            (Some(r), None, None) => Some(Self {
                kind: RuleKind::Http,
                hostnames: &r.hostnames,
                ports: r.ports.as_ref(),
                effects: r.effects.as_ref(),
            }),
            (None, Some(r), None) => Some(Self {
                kind: RuleKind::Https,
                hostnames: &r.hostnames,
                ports: r.ports.as_ref(),
                effects: r.effects.as_ref(),
            }),
            (None, None, Some(r)) => Some(Self {
                kind: RuleKind::TlsPassthrough,
                hostnames: &r.hostnames,
                ports: r.ports.as_ref(),
                effects: None,
            }),
            _ => None,
        }
    }
}

/// A compiled policy.
#[derive(Default)]
pub struct Matcher {
    http: Names,
    tls: Names,
    /// By place in the policy; a rule that is not exactly one of the three kinds is kept as none.
    rules: Vec<Option<Rule>>,
}

impl Matcher {
    /// Compiles a policy as it came. What is malformed covers nothing: the control plane may not be ours, and a
    /// fault must not let through more.
    #[must_use]
    pub fn new(policy: &EgressPolicy) -> Self {
        let mut matcher = Self::default();
        for (at, rule) in policy.rules.iter().enumerate() {
            let compiled = View::of(rule).map(|view| matcher.add(at, &view));
            matcher.rules.push(compiled);
        }
        matcher
    }

    fn add(&mut self, at: usize, view: &View<'_>) -> Rule {
        let names = match view.kind.layer() {
            Layer::Http => &mut self.http,
            Layer::Tls => &mut self.tls,
        };
        if let (Ok(at), Some(ports)) = (u32::try_from(at), Coverage::of(view.kind, view.ports)) {
            for pattern in view.hostnames.iter().filter_map(|text| Pattern::parse(text).ok()) {
                names.add(pattern, &ports, at);
            }
        }
        let entries = view.effects.map_or(&[][..], |effects| &effects.replace_headers);
        let parsed = entries.iter().enumerate().map(|(at, entry)| Effect::parse(entry).map_err(|error| (at, error)));
        Rule { kind: view.kind, effects: parsed.collect() }
    }

    /// What is to happen to a connection or a request for this host, dialled on this port.
    pub fn decide(&self, layer: Layer, host: &Host, port: u16) -> Result<Decision<'_>, Denial> {
        if self.rules.is_empty() {
            return Err(Denial::NoPolicy);
        }
        let names = match layer {
            Layer::Http => &self.http,
            Layer::Tls => &self.tls,
        };
        let mut denial = Denial::NoRule;
        for by_port in names.covering(host) {
            if let Some(decision) = by_port.get(port).and_then(|at| self.decision(at)) {
                return Ok(decision);
            }
            denial = Denial::Port;
        }
        Err(denial)
    }

    fn decision(&self, at: u32) -> Option<Decision<'_>> {
        let at = usize::try_from(at).ok()?;
        let rule = self.rules.get(at)?.as_ref()?;
        Some(Decision { rule: at, kind: rule.kind, effects: &rule.effects })
    }

    /// Whether any rule covers the name, on whatever port: what the DNS relay may answer.
    #[must_use]
    pub fn covers(&self, host: &Host) -> bool {
        [&self.http, &self.tls].into_iter().any(|names| names.covering(host).next().is_some())
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
