//! W3C trace context: `00-<trace id>-<span id>-<flags>`.

use std::fmt::Write;

const SAMPLED: u8 = 1;

/// Names one span of one trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    flags: u8,
}

impl SpanContext {
    /// Reads a `traceparent`. Later versions may have more fields; of version 00 nothing may follow.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut fields = header.split('-');
        let version = hex(fields.next()?, 2)?;
        let trace_id = hex(fields.next()?, 32)?;
        let span_id = hex(fields.next()?, 16)?;
        let flags = hex(fields.next()?, 2)?;
        let ends = version != 0 || fields.next().is_none();
        if version == 0xff || trace_id == 0 || span_id == 0 || !ends {
            return None;
        }
        Some(Self { trace_id, span_id: u64::try_from(span_id).ok()?, flags: u8::try_from(flags).ok()? })
    }

    /// A new span below `parent`, or of a new trace; sampled.
    #[must_use]
    pub(super) fn below(parent: Option<Self>) -> Self {
        let new_trace = || fastrand::u128(1..);
        let flags = parent.map_or(SAMPLED, |parent| parent.flags | SAMPLED);
        Self { trace_id: parent.map_or_else(new_trace, |p| p.trace_id), span_id: fastrand::u64(1..), flags }
    }

    #[must_use]
    pub fn sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `traceparent` of what is called from this span.
    #[must_use]
    pub fn header(&self) -> String {
        let mut text = String::with_capacity(55);
        // Writing to a String cannot fail.
        write!(text, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags).ok();
        text
    }
}

/// Lower-case digits only, as the header has them.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let good = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if good { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_is_read_and_written_alike() {
        let context = SpanContext::parse(HEADER).unwrap();
        assert!(context.sampled());
        assert_eq!(context.header(), HEADER);
        assert!(!SpanContext::parse(&HEADER.replace("-01", "-00")).unwrap().sampled());
        let later = SpanContext::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more");
        assert_eq!(later, Some(context));
    }

    #[test]
    fn what_is_no_trace_context_is_ignored() {
        for bad in [
            "",
            "00",
            &HEADER[1..],
            &HEADER.to_uppercase(),
            &format!("{HEADER}-more"),
            &HEADER.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &HEADER.replace("b7ad6b7169203331", "0000000000000000"),
            &HEADER.replacen("00", "ff", 1),
            &HEADER.replace("b7", "+7"),
            &format!(" {HEADER}"),
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_span_below_stays_in_the_trace() {
        let parent = SpanContext::parse(HEADER).unwrap();
        let child = SpanContext::below(Some(parent));
        assert_eq!(child.trace_id, parent.trace_id);
        assert_ne!(child.span_id, parent.span_id);
        let (one, other) = (SpanContext::below(None), SpanContext::below(None));
        assert_ne!(one.trace_id, other.trace_id);
        assert!(one.sampled() && SpanContext::parse(&one.header()) == Some(one));
    }
}
