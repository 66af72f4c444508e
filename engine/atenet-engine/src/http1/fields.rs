//! Header fields in the order they came, in one reused buffer.

use std::ops::Range;

/// Fields that a proxy must recognise; the rest is [`Kind::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Other,
    Connection,
    ContentLength,
    ContentType,
    Cookie,
    Expect,
    Host,
    /// `http2-settings`: belongs to the `h2c` upgrade, which is never carried.
    Http2Settings,
    /// `x-ate-*`, `ate-reason`: ours between our own parts, never believed from outside.
    Internal,
    KeepAlive,
    ProxyAuthenticate,
    ProxyAuthorization,
    ProxyConnection,
    TargetActor,
    Te,
    Traceparent,
    Trailer,
    TransferEncoding,
    Upgrade,
}

impl Kind {
    /// Recognises a field name, whatever its case.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let is = |text: &str| name.eq_ignore_ascii_case(text.as_bytes());
        let first = name.first().map_or(0, u8::to_ascii_lowercase);
        match (first, name.len()) {
            (b'h', 4) if is("host") => Self::Host,
            (b'c', 10) if is("connection") => Self::Connection,
            (b'c', 14) if is("content-length") => Self::ContentLength,
            (b'c', 12) if is("content-type") => Self::ContentType,
            (b'c', 6) if is("cookie") => Self::Cookie,
            (b'e', 6) if is("expect") => Self::Expect,
            (b'h', 14) if is("http2-settings") => Self::Http2Settings,
            (b'k', 10) if is("keep-alive") => Self::KeepAlive,
            (b'p', 16) if is("proxy-connection") => Self::ProxyConnection,
            (b'p', 18) if is("proxy-authenticate") => Self::ProxyAuthenticate,
            (b'p', 19) if is("proxy-authorization") => Self::ProxyAuthorization,
            (b't', 2) if is("te") => Self::Te,
            (b't', 7) if is("trailer") => Self::Trailer,
            (b't', 11) if is("traceparent") => Self::Traceparent,
            (b't', 17) if is("transfer-encoding") => Self::TransferEncoding,
            (b'u', 7) if is("upgrade") => Self::Upgrade,
            (b'a', 16) if is("ate-target-actor") => Self::TargetActor,
            (b'a', 10) if is("ate-reason") => Self::Internal,
            (b'x', 6..) if name[..6].eq_ignore_ascii_case(b"x-ate-") => Self::Internal,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    name: (u32, u32),
    value: (u32, u32),
    kind: Kind,
}

/// An ordered list of fields. Clearing keeps the memory, so a connection reuses one.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl Fields {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes of names and values, for sizing an output buffer.
    #[must_use]
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Appends a field; the caller vouches that both are valid.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let kind = Kind::of(name);
        let name = self.put(name);
        let value = self.put(value);
        self.spans.push(Span { name, value, kind });
    }

    /// Removes every field of that kind, then appends this one.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let kind = Kind::of(name);
        self.retain(|k, n, _| if kind == Kind::Other { !n.eq_ignore_ascii_case(name) } else { k != kind });
        self.push(name, value);
    }

    /// The first value of that kind.
    #[must_use]
    pub fn get(&self, kind: Kind) -> Option<&[u8]> {
        self.all(kind).next()
    }

    /// Every value of that kind, in order.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().filter(move |s| s.kind == kind).map(|s| self.slice(s.value))
    }

    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.spans.iter().any(|s| s.kind == kind)
    }

    /// The first value under that name.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(_, n, _)| n.eq_ignore_ascii_case(name)).map(|(_, _, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Kind, &[u8], &[u8])> {
        self.spans.iter().map(|s| (s.kind, self.slice(s.name), self.slice(s.value)))
    }

    pub fn retain(&mut self, mut keep: impl FnMut(Kind, &[u8], &[u8]) -> bool) {
        let text = &self.text;
        self.spans.retain(|s| keep(s.kind, &text[range(s.name)], &text[range(s.value)]));
    }

    pub fn remove(&mut self, kind: Kind) {
        self.spans.retain(|s| s.kind != kind);
    }

    fn put(&mut self, bytes: &[u8]) -> (u32, u32) {
        // Heads are bounded far below 4 GiB before they get here.
        let start = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.text.extend_from_slice(bytes);
        (start, u32::try_from(self.text.len()).unwrap_or(u32::MAX))
    }

    fn slice(&self, at: (u32, u32)) -> &[u8] {
        &self.text[range(at)]
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

/// The members of a comma-separated list, trimmed, empty ones skipped.
pub fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii).filter(|m| !m.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_whatever_their_case() {
        for (name, kind) in [
            ("Host", Kind::Host),
            ("ATE-TARGET-ACTOR", Kind::TargetActor),
            ("X-Ate-Assignment-Stale", Kind::Internal),
            ("x-ate-", Kind::Internal),
            ("ate-reason", Kind::Internal),
            ("X-ATE", Kind::Other),
            ("Transfer-Encoding", Kind::TransferEncoding),
            ("accept", Kind::Other),
        ] {
            assert_eq!(Kind::of(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn order_and_repetition_are_kept() {
        let mut fields = Fields::new();
        fields.push(b"Set-Cookie", b"a=1");
        fields.push(b"Host", b"x");
        fields.push(b"Set-Cookie", b"b=2");
        let seen: Vec<_> = fields.iter().map(|(_, n, v)| (n.to_vec(), v.to_vec())).collect();
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[2], (b"Set-Cookie".to_vec(), b"b=2".to_vec()));
    }

    #[test]
    fn set_replaces_every_field_of_the_name() {
        let mut fields = Fields::new();
        fields.push(b"X-A", b"1");
        fields.push(b"x-a", b"2");
        fields.set(b"x-a", b"3");
        assert_eq!(fields.iter().map(|(_, _, v)| v.to_vec()).collect::<Vec<_>>(), [b"3".to_vec()]);
    }

    #[test]
    fn a_list_is_split_and_trimmed() {
        let members: Vec<_> = list_members(b" close, ,\tTE ,x").collect();
        assert_eq!(members, [&b"close"[..], b"TE", b"x"]);
    }
}
