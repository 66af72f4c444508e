//! `atenet._engine`.
mod api_front;
mod capture;
mod errors;
mod extproc;
mod logging;
mod minting;
mod names;
mod policy;
mod router;
mod tunnel;

use pyo3::prelude::*;

#[pymodule]
fn _engine(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("EngineError", m.py().get_type::<errors::EngineError>())?;
    logging::register(m)?;
    api_front::register(m)?;
    capture::register(m)?;
    extproc::register(m)?;
    minting::register(m)?;
    names::register(m)?;
    policy::register(m)?;
    router::register(m)?;
    tunnel::register(m)
}
