//! `Tunnel`: atunnel for the worker; and `socket_in_netns` for its probes.

use std::net::IpAddr;
use std::os::fd::{IntoRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atenet_engine::config::TunnelConfig;
use atenet_engine::tunnel::server::{ActivateError, TunnelServer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::engine_error;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("TUNNEL_STREAMS", atenet_engine::tunnel::MAX_STREAMS)?;
    m.add_class::<Tunnel>()?;
    m.add_function(wrap_pyfunction!(socket_in_netns, m)?)
}

#[pyfunction]
fn socket_in_netns(py: Python<'_>, netns: PathBuf) -> PyResult<RawFd> {
    let made = py.detach(|| atenet_net::NetNs::open(&netns)?.tcp_socket(socket2::Domain::IPV4));
    Ok(made?.into_raw_fd())
}

/// A running server and what it runs on. Calls hold it for as long as they wait, so that the runtime outlives them.
struct Running {
    server: TunnelServer,
    runtime: Runtime,
}

enum State {
    New(Box<TunnelConfig>),
    Running(Arc<Running>),
    Closed,
}

#[pyclass(frozen, module = "atenet._engine")]
struct Tunnel(Mutex<State>);

impl Tunnel {
    fn running(&self) -> PyResult<Arc<Running>> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => Ok(running.clone()),
            State::New(_) => Err(engine_error("tunnel: not started")),
            State::Closed => Err(engine_error("tunnel: closed")),
        }
    }
}

fn start(config: &TunnelConfig) -> PyResult<Running> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name("atunnel");
    if let Some(threads) = config.threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| engine_error(format_args!("cannot start the runtime: {error}")))?;
    let entered = runtime.enter();
    let server = TunnelServer::start(config).map_err(engine_error)?;
    drop(entered);
    Ok(Running { server, runtime })
}

fn activate_error(error: ActivateError) -> PyErr {
    match error {
        ActivateError::Netns { .. } => engine_error(error),
        ActivateError::Name { .. } | ActivateError::Uid => PyValueError::new_err(error.to_string()),
    }
}

fn seconds(field: &str, value: f64) -> PyResult<Duration> {
    let problem = |_| PyValueError::new_err(format!("{field}: must be a number of seconds from 0 up, not {value}"));
    Duration::try_from_secs_f64(value).map_err(problem)
}

#[pymethods]
impl Tunnel {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config = TunnelConfig::from_json(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(State::New(Box::new(config)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let config = match &*state {
                State::New(config) => config,
                State::Running(_) => return Err(engine_error("tunnel: already started")),
                State::Closed => return Err(engine_error("tunnel: closed")),
            };
            let running = start(config)?;
            let address = running.server.local_addr().to_string();
            *state = State::Running(Arc::new(running));
            Ok(address)
        })
    }

    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[pyo3(signature = (atespace, name, uid, *, netns, address))]
    fn activate(
        &self,
        py: Python<'_>,
        atespace: &str,
        name: &str,
        uid: &str,
        netns: &str,
        address: &str,
    ) -> PyResult<()> {
        let ip: IpAddr = address
            .parse()
            .map_err(|_| PyValueError::new_err(format!("address: must be an IP address, not {address:?}")))?;
        let running = self.running()?;
        py.detach(|| running.server.activate(atespace, name, uid, Path::new(netns), ip)).map_err(activate_error)
    }

    #[pyo3(signature = (atespace, name, uid, *, grace_seconds))]
    fn deactivate(&self, py: Python<'_>, atespace: &str, name: &str, uid: &str, grace_seconds: f64) -> PyResult<bool> {
        let grace = seconds("grace_seconds", grace_seconds)?;
        let running = self.running()?;
        py.detach(|| running.runtime.block_on(running.server.deactivate(atespace, name, uid, grace)))
            .map_err(activate_error)
    }

    #[pyo3(signature = (atespace, name, uid, *, idle_seconds))]
    fn close_if_idle(
        &self,
        py: Python<'_>,
        atespace: &str,
        name: &str,
        uid: &str,
        idle_seconds: f64,
    ) -> PyResult<bool> {
        let idle = seconds("idle_seconds", idle_seconds)?;
        let running = self.running()?;
        py.detach(|| running.server.close_if_idle(atespace, name, uid, idle)).map_err(activate_error)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running()?;
        py.detach(|| serde_json::to_string(&running.server.stats())).map_err(engine_error)
    }

    fn close(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<()> {
        let limit = seconds("timeout_seconds", timeout_seconds)?;
        py.detach(|| {
            let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Closed);
            if let State::Running(running) = state {
                running.runtime.block_on(running.server.close(limit));
                // If another call still waits on it, the runtime ends with that call.
                if let Ok(running) = Arc::try_unwrap(running).map_err(drop) {
                    drop(running.server);
                    running.runtime.shutdown_timeout(Duration::from_secs(1));
                }
            }
        });
        Ok(())
    }
}
