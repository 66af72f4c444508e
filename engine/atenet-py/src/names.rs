//! Resource names and actor references.

use atenet_engine::actor_ref::{self, ActorRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(check_name, m)?)?;
    m.add_function(wrap_pyfunction!(parse_actor_ref, m)?)
}

#[pyfunction]
fn check_name(name: &str) -> PyResult<()> {
    actor_ref::check_name(name.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
fn parse_actor_ref(value: &str) -> PyResult<(String, String)> {
    let actor = ActorRef::parse(value.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((actor.atespace().to_owned(), actor.name().to_owned()))
}
