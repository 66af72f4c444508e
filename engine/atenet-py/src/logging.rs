//! The engine's log lines: the same JSON objects on stderr that `atenet.logs` writes.

use std::fmt;
use std::time::SystemTime;

use atenet_engine::timestamp::Rfc3339;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(log_to_stderr, m)?)
}

/// The first call decides; later ones change nothing.
#[pyfunction]
fn log_to_stderr(process: String, level: &str) -> PyResult<()> {
    let level = match level.to_ascii_lowercase().as_str() {
        "debug" => LevelFilter::DEBUG,
        "info" => LevelFilter::INFO,
        "warning" => LevelFilter::WARN,
        "error" => LevelFilter::ERROR,
        _ => {
            let problem = format!("log level {level:?} is not one of debug, info, warning, error");
            return Err(PyValueError::new_err(problem));
        }
    };
    // Libraries below speak of headers at debug level; only the engine's own lines are known to hold none.
    let ours = tracing_subscriber::filter::Targets::new()
        .with_target("atenet_engine", level)
        .with_target("atenet_net", level)
        .with_default(level.min(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer().event_format(JsonLines { process }).with_writer(std::io::stderr);
    let subscriber = {
        use tracing_subscriber::layer::SubscriberExt;
        tracing_subscriber::registry().with(ours).with(lines)
    };
    tracing::subscriber::set_global_default(subscriber).ok();
    Ok(())
}

struct JsonLines {
    process: String,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Map::new();
        line.insert("time".into(), Rfc3339(SystemTime::now()).to_string().into());
        line.insert("level".into(), level(*event.metadata().level()).into());
        line.insert("process".into(), self.process.as_str().into());
        line.insert("logger".into(), event.metadata().target().replace("::", ".").into());
        event.record(&mut Fields(&mut line));
        writeln!(writer, "{}", Value::Object(line))
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }
}
