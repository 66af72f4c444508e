//! `ApiFront`: what stands before the control plane's own server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atenet_engine::api_front;
use atenet_engine::config::ApiFrontConfig;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::engine_error;

/// How long tasks that still run may take to end with the runtime.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ApiFront>()
}

/// A running front and what it runs on. Calls hold it for as long as they wait, so that the runtime outlives them.
struct Running {
    front: api_front::ApiFront,
    runtime: Runtime,
}

enum State {
    New(Box<ApiFrontConfig>),
    Running(Arc<Running>),
    Closed,
}

#[pyclass(frozen, module = "atenet._engine")]
struct ApiFront(Mutex<State>);

fn start(config: &ApiFrontConfig) -> PyResult<Running> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("api-front");
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| engine_error(format_args!("cannot start the runtime: {error}")))?;
    let front = runtime.block_on(api_front::ApiFront::start(config)).map_err(engine_error)?;
    Ok(Running { front, runtime })
}

#[pymethods]
impl ApiFront {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config = ApiFrontConfig::from_json(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(State::New(Box::new(config)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let config = match &*state {
                State::New(config) => config,
                State::Running(_) => return Err(engine_error("front: already started")),
                State::Closed => return Err(engine_error("front: closed")),
            };
            let running = start(config)?;
            let address = running.front.address().to_string();
            *state = State::Running(Arc::new(running));
            Ok(address)
        })
    }

    fn answered(&self) -> PyResult<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => serde_json::to_string(&running.front.answered()).map_err(engine_error),
            State::New(_) => Err(engine_error("front: not started")),
            State::Closed => Err(engine_error("front: closed")),
        }
    }

    fn close(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<()> {
        let limit = Duration::try_from_secs_f64(timeout_seconds).map_err(|_| {
            PyValueError::new_err(format!("timeout_seconds: must be seconds from 0 up, not {timeout_seconds}"))
        })?;
        py.detach(|| {
            let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Closed);
            let State::Running(running) = state else { return };
            running.runtime.block_on(running.front.close(limit));
            if let Ok(Running { front, runtime }) = Arc::try_unwrap(running).map_err(drop) {
                drop(front);
                runtime.shutdown_timeout(SHUTDOWN_LIMIT);
            }
        });
        Ok(())
    }
}
