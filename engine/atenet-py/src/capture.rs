//! `Capture`: the egress ends of a worker's actors.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use atenet_engine::actor_ref::ActorRef;
use atenet_engine::capture::{CaptureError, CaptureServer, Opening};
use atenet_engine::config::CaptureConfig;
use atenet_engine::proto::EgressPolicy;
use prost::Message;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::engine_error;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Capture>()
}

/// Calls hold it for as long as they wait, so that the runtime outlives them.
struct Running {
    server: CaptureServer,
    runtime: Runtime,
}

#[pyclass(frozen, module = "atenet._engine")]
struct Capture(Mutex<Option<Arc<Running>>>);

impl Capture {
    fn running(&self) -> PyResult<Arc<Running>> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone().ok_or_else(|| engine_error("capture: closed"))
    }
}

fn start(config: CaptureConfig) -> PyResult<Running> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("capture");
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| engine_error(format_args!("cannot start the runtime: {error}")))?;
    let server = CaptureServer::new(config).map_err(engine_error)?;
    Ok(Running { server, runtime })
}

fn failed(error: CaptureError) -> PyErr {
    match error {
        CaptureError::Name { .. } | CaptureError::Uid | CaptureError::GatewayAddress(_) => {
            PyValueError::new_err(error.to_string())
        }
        other => engine_error(other),
    }
}

#[pymethods]
impl Capture {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = CaptureConfig::from_json(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(Some(Arc::new(py.detach(|| start(config))?)))))
    }

    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[pyo3(signature = (atespace, name, uid, *, netns, gateway))]
    fn open(
        &self,
        py: Python<'_>,
        atespace: &str,
        name: &str,
        uid: &str,
        netns: &str,
        gateway: Option<&str>,
    ) -> PyResult<()> {
        let running = self.running()?;
        py.detach(|| {
            let _runtime = running.runtime.enter();
            running.server.open(Opening { atespace, name, uid, netns: Path::new(netns), gateway })
        })
        .map_err(failed)
    }

    #[pyo3(signature = (uid, *, chain, key, not_after))]
    fn set_credential(&self, uid: &str, chain: Vec<Vec<u8>>, key: Vec<u8>, not_after: f64) -> PyResult<()> {
        let since = Duration::try_from_secs_f64(not_after)
            .map_err(|_| PyValueError::new_err(format!("not_after: must be seconds since 1970, not {not_after}")))?;
        let running = self.running()?;
        running.server.set_credential(uid, chain, key, SystemTime::UNIX_EPOCH + since).map_err(failed)
    }

    fn drop_credential(&self, uid: &str) -> PyResult<()> {
        self.running()?.server.drop_credential(uid).map_err(failed)
    }

    fn set_policy(&self, py: Python<'_>, uid: &str, policy: &[u8]) -> PyResult<()> {
        let policy = EgressPolicy::decode(policy)
            .map_err(|error| PyValueError::new_err(format!("policy: is no serialised ateapi.EgressPolicy: {error}")))?;
        let running = self.running()?;
        py.detach(|| running.server.set_policy(uid, &policy)).map_err(failed)
    }

    fn confirm_policy(&self, uid: &str) -> PyResult<()> {
        self.running()?.server.confirm_policy(uid).map_err(failed)
    }

    fn close_actor(&self, py: Python<'_>, uid: &str) -> PyResult<bool> {
        let running = self.running()?;
        Ok(py.detach(|| running.runtime.block_on(running.server.close_actor(uid))))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running()?;
        py.detach(|| serde_json::to_string(&running.server.stats())).map_err(engine_error)
    }

    fn denials(&self, py: Python<'_>, actor: &str) -> PyResult<String> {
        let actor =
            ActorRef::parse(actor.as_bytes()).map_err(|error| PyValueError::new_err(format!("actor: {error}")))?;
        let running = self.running()?;
        py.detach(|| serde_json::to_string(&running.server.denials().of(&actor))).map_err(engine_error)
    }

    fn metrics(&self) -> PyResult<String> {
        Ok(self.running()?.server.metrics())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(running) = running {
                running.runtime.block_on(running.server.close());
                // If another call still waits on it, the runtime ends with that call.
                if let Ok(running) = Arc::try_unwrap(running).map_err(drop) {
                    running.runtime.shutdown_timeout(Duration::from_secs(1));
                }
            }
        });
    }
}
