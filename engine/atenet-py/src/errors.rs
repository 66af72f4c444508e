//! The engine's errors as Python sees them.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(_engine, EngineError, PyException, "What the engine could not do, in one line.");

/// An [`atenet_engine::error::EngineError`] as `EngineError`.
pub(crate) fn engine_error(error: impl std::fmt::Display) -> PyErr {
    EngineError::new_err(error.to_string())
}
