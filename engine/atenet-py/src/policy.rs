//! Egress policies: the one validator, and the one matcher as `EgressPolicy`.

use std::hint::black_box;
use std::time::Instant;

use atenet_engine::policy::{self, CredentialUri, Denial, Host, Layer, Matcher};
use atenet_engine::proto;
use prost::Message;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<EgressDecision>()?;
    m.add_class::<EgressPolicy>()?;
    m.add_function(wrap_pyfunction!(normal_host, m)?)?;
    m.add_function(wrap_pyfunction!(parse_credential_uri, m)?)?;
    m.add_function(wrap_pyfunction!(validate_egress_policy, m)?)
}

fn decode(policy: &[u8]) -> PyResult<proto::EgressPolicy> {
    proto::EgressPolicy::decode(policy)
        .map_err(|error| PyValueError::new_err(format!("policy: is no serialised ateapi.EgressPolicy: {error}")))
}

#[pyfunction]
fn validate_egress_policy(py: Python<'_>, policy: &[u8]) -> PyResult<Vec<(String, String)>> {
    let policy = decode(policy)?;
    let faults = py.detach(|| policy::validate(&policy));
    Ok(faults.into_iter().map(|fault| (fault.field, fault.message)).collect())
}

#[pyfunction]
fn normal_host(host: &str) -> PyResult<String> {
    let host = Host::parse(host.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(host.to_string())
}

#[pyfunction]
fn parse_credential_uri(uri: &str) -> PyResult<(String, Vec<String>)> {
    let parsed = CredentialUri::parse(uri).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((parsed.class().to_owned(), parsed.path().map(str::to_owned).collect()))
}

fn layer(kind: &str) -> PyResult<Layer> {
    match kind {
        "http" => Ok(Layer::Http),
        "tls" => Ok(Layer::Tls),
        _ => Err(PyValueError::new_err(format!("kind: must be http or tls, not {kind:?}"))),
    }
}

#[pyclass(frozen, get_all, module = "atenet._engine")]
struct EgressDecision {
    allowed: bool,
    host: Option<String>,
    rule: Option<usize>,
    rule_kind: Option<&'static str>,
    reason: Option<&'static str>,
    replaces: Vec<String>,
    problem: Option<String>,
}

impl EgressDecision {
    fn denied(host: Option<String>, reason: &'static str, problem: Option<String>) -> Self {
        let (rule, rule_kind) = (None, None);
        Self { allowed: false, host, rule, rule_kind, reason: Some(reason), replaces: Vec::new(), problem }
    }

    fn of(host: &Host, decided: Result<policy::Decision<'_>, Denial>) -> Self {
        let decision = match decided {
            Ok(decision) => decision,
            Err(denial) => return Self::denied(Some(host.to_string()), denial.reason(), None),
        };
        let (replaces, problem) = match decision.effects() {
            Ok(effects) => (effects.iter().map(|effect| effect.header.clone()).collect(), None),
            Err((at, error)) => (Vec::new(), Some(format!("effects.replace_headers[{at}]: {error}"))),
        };
        let (host, rule, rule_kind) = (Some(host.to_string()), Some(decision.rule), Some(decision.kind.as_str()));
        Self { allowed: true, host, rule, rule_kind, reason: None, replaces, problem }
    }
}

#[pyclass(frozen, module = "atenet._engine")]
struct EgressPolicy(Matcher);

#[pymethods]
impl EgressPolicy {
    #[staticmethod]
    fn compile(py: Python<'_>, policy: &[u8]) -> PyResult<Self> {
        let policy = decode(policy)?;
        Ok(Self(py.detach(|| Matcher::new(&policy))))
    }

    fn decide(&self, kind: &str, name: &str, port: u16) -> PyResult<EgressDecision> {
        let layer = layer(kind)?;
        Ok(match Host::parse(name.as_bytes()) {
            Err(error) => EgressDecision::denied(None, "bad-host", Some(format!("name: {error}"))),
            Ok(host) => EgressDecision::of(&host, self.0.decide(layer, &host, port)),
        })
    }

    fn covers(&self, name: &str) -> bool {
        Host::parse(name.as_bytes()).is_ok_and(|host| self.0.covers(&host))
    }

    #[allow(clippy::needless_pass_by_value, reason = "pyo3 hands over a Vec")]
    fn decision_seconds(
        &self,
        py: Python<'_>,
        kind: &str,
        names: Vec<String>,
        port: u16,
        rounds: u32,
    ) -> PyResult<f64> {
        let layer = layer(kind)?;
        if names.is_empty() || rounds == 0 {
            return Err(PyValueError::new_err("names, rounds: must not be empty"));
        }
        py.detach(|| {
            let began = Instant::now();
            for _ in 0..rounds {
                for name in &names {
                    let host = Host::parse(black_box(name).as_bytes());
                    let host = host.map_err(|error| PyValueError::new_err(format!("names: {name:?}: {error}")))?;
                    black_box(self.0.decide(layer, &host, port).map(|decision| decision.effects())).ok();
                }
            }
            Ok(began.elapsed().as_secs_f64() / (f64::from(rounds) * names.len() as f64))
        })
    }
}
