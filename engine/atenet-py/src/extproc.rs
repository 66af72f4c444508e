//! `ExtProc`: the decisions that Envoy asks for; and `refusals`, the error table.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atenet_engine::actor_ref::ActorRef;
use atenet_engine::config::{EgressDecisionsConfig, ExtProcConfig};
use atenet_engine::egress::{self, EgressDecisions};
use atenet_engine::error::EngineError;
use atenet_engine::extproc;
use atenet_engine::refusal::{Dataplane, Refusal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::errors::engine_error;

/// How long tasks that still run may take to end with the runtime.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ExtProc>()?;
    m.add_function(wrap_pyfunction!(refusals, m)?)?;
    m.add_function(wrap_pyfunction!(egress_denials, m)?)
}

#[pyfunction]
fn refusals(dataplane: &str) -> PyResult<String> {
    let plane = match dataplane {
        "agentgateway" => Dataplane::Agentgateway,
        "envoy" => Dataplane::Envoy,
        _ => return Err(PyValueError::new_err(format!("dataplane: must be agentgateway or envoy, not {dataplane:?}"))),
    };
    let row = |refusal: Refusal| {
        json!({
            "reason": refusal.reason(),
            "status": refusal.status(plane).as_u16(),
            "body": refusal.body(),
            "grpc_status": refusal.grpc_status(plane),
            "retry_after": refusal.retry_after(),
        })
    };
    Ok(Refusal::ALL.map(row).into_iter().collect::<serde_json::Value>().to_string())
}

#[pyfunction]
fn egress_denials() -> String {
    egress::denial_table().to_string()
}

/// What is decided: one direction.
enum Config {
    Ingress(ExtProcConfig),
    Egress(EgressDecisionsConfig),
}

impl Config {
    fn threads(&self) -> Option<usize> {
        match self {
            Self::Ingress(config) => config.threads,
            Self::Egress(config) => config.threads,
        }
    }
}

enum Service {
    Ingress(extproc::ExtProc),
    Egress(EgressDecisions),
}

impl Service {
    async fn start(config: &Config) -> Result<Self, EngineError> {
        match config {
            Config::Ingress(config) => extproc::ExtProc::start(config).await.map(Self::Ingress),
            Config::Egress(config) => EgressDecisions::start(config).await.map(Self::Egress),
        }
    }

    fn address(&self) -> &str {
        match self {
            Self::Ingress(service) => service.address(),
            Self::Egress(service) => service.address(),
        }
    }

    fn status(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Ingress(service) => serde_json::to_string(&service.status()),
            Self::Egress(service) => serde_json::to_string(&service.status()),
        }
    }

    fn metrics(&self) -> String {
        match self {
            Self::Ingress(service) => service.metrics(),
            Self::Egress(service) => service.metrics(),
        }
    }

    async fn close(&self, limit: Duration) {
        match self {
            Self::Ingress(service) => service.close(limit).await,
            Self::Egress(service) => service.close(limit).await,
        }
    }
}

/// A running service and what it runs on. Calls hold it for as long as they wait, so that the runtime outlives them.
struct Running {
    service: Service,
    runtime: Runtime,
}

enum State {
    New(Box<Config>),
    Running(Arc<Running>),
    Closed,
}

#[pyclass(frozen, module = "atenet._engine")]
struct ExtProc(Mutex<State>);

impl ExtProc {
    fn running(&self) -> PyResult<Arc<Running>> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => Ok(running.clone()),
            State::New(_) => Err(engine_error("ext_proc: not started")),
            State::Closed => Err(engine_error("ext_proc: closed")),
        }
    }
}

fn start(config: &Config) -> PyResult<Running> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("ext-proc");
    if let Some(threads) = config.threads() {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| engine_error(format_args!("cannot start the runtime: {error}")))?;
    let service = runtime.block_on(Service::start(config)).map_err(engine_error)?;
    Ok(Running { service, runtime })
}

#[pymethods]
impl ExtProc {
    #[new]
    #[pyo3(signature = (config, mode = "ingress"))]
    fn new(config: &str, mode: &str) -> PyResult<Self> {
        let read = match mode {
            "ingress" => ExtProcConfig::from_json(config).map(Config::Ingress),
            "egress" => EgressDecisionsConfig::from_json(config).map(Config::Egress),
            _ => return Err(PyValueError::new_err(format!("mode: must be ingress or egress, not {mode:?}"))),
        };
        let config = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(State::New(Box::new(config)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let config = match &*state {
                State::New(config) => config,
                State::Running(_) => return Err(engine_error("ext_proc: already started")),
                State::Closed => return Err(engine_error("ext_proc: closed")),
            };
            let running = start(config)?;
            let address = running.service.address().to_string();
            *state = State::Running(Arc::new(running));
            Ok(address)
        })
    }

    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running()?;
        py.detach(|| running.service.status()).map_err(engine_error)
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running()?;
        Ok(py.detach(|| running.service.metrics()))
    }

    fn denials(&self, py: Python<'_>, actor: &str) -> PyResult<String> {
        let actor =
            ActorRef::parse(actor.as_bytes()).map_err(|error| PyValueError::new_err(format!("actor: {error}")))?;
        let running = self.running()?;
        let Service::Egress(service) = &running.service else {
            return Err(engine_error("ext_proc: only egress denies"));
        };
        py.detach(|| serde_json::to_string(&service.denials().of(&actor))).map_err(engine_error)
    }

    fn close(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<()> {
        let limit = Duration::try_from_secs_f64(timeout_seconds).map_err(|_| {
            PyValueError::new_err(format!("timeout_seconds: must be seconds from 0 up, not {timeout_seconds}"))
        })?;
        py.detach(|| {
            let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Closed);
            let State::Running(running) = state else { return };
            running.runtime.block_on(running.service.close(limit));
            // If another call still waits on it, the runtime ends with that call.
            if let Ok(Running { service, runtime }) = Arc::try_unwrap(running).map_err(drop) {
                drop(service);
                runtime.shutdown_timeout(SHUTDOWN_LIMIT);
            }
        });
        Ok(())
    }
}
