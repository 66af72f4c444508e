//! `Router`: the native ingress router.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atenet_engine::actor_ref::ActorRef;
use atenet_engine::config::RouterConfig;
use atenet_engine::router;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::engine_error;

/// How long tasks that still run may take to end with the runtime.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Router>()
}

/// A running router and what it runs on. Calls hold it for as long as they wait, so that the runtime outlives them.
struct Running {
    router: router::Router,
    runtime: Runtime,
}

enum State {
    New(Box<RouterConfig>),
    Running(Arc<Running>),
    Closed,
}

#[pyclass(frozen, module = "atenet._engine")]
struct Router(Mutex<State>);

impl Router {
    fn running(&self) -> PyResult<Arc<Running>> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => Ok(running.clone()),
            State::New(_) => Err(engine_error("router: not started")),
            State::Closed => Err(engine_error("router: closed")),
        }
    }
}

fn start(config: &RouterConfig) -> PyResult<Running> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("router");
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| engine_error(format_args!("cannot start the runtime: {error}")))?;
    let router =
        runtime.block_on(router::Router::start(config.clone(), Box::new(std::io::stderr()))).map_err(engine_error)?;
    Ok(Running { router, runtime })
}

#[pymethods]
impl Router {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config = RouterConfig::from_json(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(State::New(Box::new(config)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<HashMap<String, Vec<String>>> {
        py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let config = match &*state {
                State::New(config) => config,
                State::Running(_) => return Err(engine_error("router: already started")),
                State::Closed => return Err(engine_error("router: closed")),
            };
            let running = start(config)?;
            let text = |bound: &Vec<SocketAddr>| bound.iter().map(SocketAddr::to_string).collect();
            let addresses =
                running.router.addresses().iter().map(|(name, bound)| (name.clone(), text(bound))).collect();
            *state = State::Running(Arc::new(running));
            Ok(addresses)
        })
    }

    fn drain(&self, py: Python<'_>) -> PyResult<bool> {
        let running = self.running()?;
        Ok(py.detach(|| running.runtime.block_on(running.router.drain())))
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running()?;
        Ok(py.detach(|| running.router.telemetry().metrics_text()))
    }

    fn denials(&self, py: Python<'_>, actor: &str) -> PyResult<String> {
        let actor =
            ActorRef::parse(actor.as_bytes()).map_err(|error| PyValueError::new_err(format!("actor: {error}")))?;
        let running = self.running()?;
        py.detach(|| serde_json::to_string(&running.router.denials().of(&actor)))
            .map_err(|error| engine_error(format_args!("denials: {error}")))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Closed);
            let State::Running(running) = state else { return };
            running.runtime.block_on(running.router.stop());
            // If another call still waits on it, the runtime ends with that call.
            if let Ok(Running { router, runtime }) = Arc::try_unwrap(running).map_err(drop) {
                drop(router);
                runtime.shutdown_timeout(SHUTDOWN_LIMIT);
            }
        });
    }
}
