//! What minting costs.

use std::path::PathBuf;

use atenet_engine::tls::{CredentialFiles, Interception};
use pyo3::prelude::*;

use crate::errors::engine_error;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(minting_seconds, m)?)
}

#[pyfunction]
fn minting_seconds(py: Python<'_>, cert: PathBuf, key: PathBuf, count: u32) -> PyResult<f64> {
    py.detach(|| {
        let interception = Interception::new(CredentialFiles { cert, key }).map_err(engine_error)?;
        interception.minting_seconds(count).map_err(engine_error)
    })
}
