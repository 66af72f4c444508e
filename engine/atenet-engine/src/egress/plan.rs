//! What is to become of a request, or of a TLS connection: judged by its own host (rows E-08 to E-15).

use std::sync::Arc;

use http::Method;

use super::carry::Leg;
use super::denial::Denial;
use super::tunnel::Tunnel;
use super::{Gateway, Refused};
use crate::exchange::headers;
use crate::http1::{Fields, Framing, Kind, RequestHead, Version, list_members};
use crate::policy::{Authority, Effect, Host, Layer, RuleKind};

/// Where proxies say whose certificate they saw.
pub(super) const CLIENT_CERT: &[u8] = b"x-forwarded-client-cert";

/// What is to be done with a request.
pub(super) struct Plan {
    pub(super) host: Host,
    pub(super) rule: usize,
    pub(super) kind: RuleKind,
    pub(super) effects: Arc<[Effect]>,
    pub(super) framing: Framing,
    pub(super) grpc: bool,
    pub(super) expects_continue: bool,
}

/// The rule that covers the name of a ClientHello.
pub(super) async fn judge_name(
    gateway: &Gateway,
    tunnel: &Tunnel,
    name: Option<&[u8]>,
) -> Result<(Host, usize, RuleKind), Refused> {
    let name = name.and_then(|name| Host::from_sni(name).ok());
    let host = name.ok_or(Refused::new(Denial::NoServerName))?;
    let matcher = gateway.policy(tunnel).await.map_err(|denial| Refused::new(denial).of(&host))?;
    match matcher.decide(Layer::Tls, &host, tunnel.port()) {
        Ok(decision) => Ok((host, decision.rule, decision.kind)),
        Err(denial) => Err(Refused::new(denial.into()).of(&host)),
    }
}

/// Judges the request and makes it what the origin is to get.
pub(super) async fn prepare(
    leg: &Leg,
    request: &mut RequestHead,
    judged: Result<Framing, Denial>,
) -> Result<Plan, Refused> {
    let framing = judged.map_err(Refused::new)?;
    let host = destination(request).map_err(Refused::new)?;
    let refused = |denial| Refused::new(denial).of(&host);
    let matcher = leg.gateway.policy(&leg.tunnel).await.map_err(refused)?;
    let decision = matcher.decide(leg.layer, &host, leg.tunnel.port()).map_err(|denial| refused(denial.into()))?;
    let (rule, kind) = (decision.rule, decision.kind);
    let refused = |denial| refused(denial).by(rule);
    if kind == RuleKind::TlsPassthrough {
        return Err(refused(Denial::NotIntercepted));
    }
    let effects = decision.effects().map_err(|_| refused(Denial::CredentialMisconfigured))?;
    if !effects.is_empty() && request.method.as_str().eq_ignore_ascii_case("TRACE") {
        return Err(refused(Denial::Trace));
    }
    let fields = &mut request.fields;
    let expects = fields.get(Kind::Expect).is_some_and(|e| e.eq_ignore_ascii_case(b"100-continue"));
    let expects_continue = expects && request.version == Version::Http11 && framing.has_body();
    let grpc = headers::is_grpc(fields);
    to_origin(fields, framing, &leg.host_field(&host));
    inject(leg, fields, &effects).await.map_err(refused)?;
    drop(matcher);
    Ok(Plan { host, rule, kind, effects, framing, grpc, expects_continue })
}

/// The host that a request is for, once it is known to be one that may be carried (rows E-10 and E-13).
fn destination(request: &RequestHead) -> Result<Host, Denial> {
    if request.method == Method::CONNECT {
        return Err(Denial::NestedConnect);
    }
    let fields = &request.fields;
    // `h2c` and its like are hop-by-hop and merely dropped.
    if fields.all(Kind::Upgrade).flat_map(list_members).any(|token| token.eq_ignore_ascii_case(b"websocket")) {
        return Err(Denial::Upgrade);
    }
    let mut hosts = fields.all(Kind::Host);
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Authority::parse(host).map(|authority| authority.host).map_err(|_| Denial::BadHost),
        _ => Err(Denial::BadHost),
    }
}

/// The actor's hop removed, and what would speak for us; one spelling of the host.
fn to_origin(fields: &mut Fields, framing: Framing, host: &str) {
    headers::to_actor(fields, framing, false);
    fields.retain(|_, name, _| !name.eq_ignore_ascii_case(CLIENT_CERT));
    fields.set(b"host", host.as_bytes());
}

/// Replaces what the request carries; what it does not carry is not even fetched (row E-14).
async fn inject(leg: &Leg, fields: &mut Fields, effects: &[Effect]) -> Result<(), Denial> {
    let (gateway, tunnel) = (&leg.gateway, &leg.tunnel);
    for effect in effects {
        if fields.named(effect.header.as_bytes()).is_none() {
            continue;
        }
        let who = (&tunnel.actor, &tunnel.uid);
        let secret = gateway.credentials.value(&gateway.control, who, &effect.credential).await?;
        fields.set(effect.header.as_bytes(), &[effect.prefix.as_bytes(), &secret].concat());
    }
    Ok(())
}

impl Leg {
    /// The origin's Host: one spelling, and the port only where it is not the scheme's own.
    pub(super) fn host_field(&self, host: &Host) -> String {
        let usual = match self.layer {
            Layer::Http => 80,
            Layer::Tls => 443,
        };
        if self.tunnel.port() == usual { host.to_string() } else { format!("{host}:{}", self.tunnel.port()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> RequestHead {
        let mut head = RequestHead::default();
        for (name, value) in fields {
            head.fields.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    #[test]
    fn a_request_is_for_its_one_host() {
        let of = |fields: &[(&str, &str)]| destination(&head(fields)).map(|host| host.to_string());
        assert_eq!(of(&[("Host", "API.example.com.:8080")]), Ok("api.example.com".into()));
        assert_eq!(of(&[]), Err(Denial::BadHost));
        assert_eq!(of(&[("host", "a"), ("host", "a")]), Err(Denial::BadHost));
        assert_eq!(of(&[("host", "a\u{ff0e}example")]), Err(Denial::BadHost));
        assert_eq!(of(&[("host", "a"), ("upgrade", "h2c")]), Ok("a".into()));
        assert_eq!(of(&[("host", "a"), ("upgrade", "h2c, WebSocket")]), Err(Denial::Upgrade));
        let connect = RequestHead { method: Method::CONNECT, ..head(&[("host", "a")]) };
        assert_eq!(destination(&connect), Err(Denial::NestedConnect));
    }

    // B107
    #[test]
    fn what_speaks_for_us_is_removed() {
        let mut head = head(&[
            ("ate-target-actor", "a/b"),
            ("X-Forwarded-Client-Cert", "By=spiffe://x"),
            ("x-ate-anything", "1"),
            ("host", "A.example:80"),
            ("x-other", "stays"),
        ]);
        to_origin(&mut head.fields, Framing::Empty, "a.example");
        let left: Vec<_> = head.fields.iter().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!(left, [(b"x-other".to_vec(), b"stays".to_vec()), (b"host".to_vec(), b"a.example".to_vec())]);
    }
}
