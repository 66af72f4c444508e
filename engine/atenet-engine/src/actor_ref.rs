//! The name of an actor: `<atespace>/<actor>`, both RFC 1123 labels.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use thiserror::Error;

/// The one header that names the actor.
pub const TARGET_HEADER: &str = "ate-target-actor";

const MAX_LABEL: usize = 63;

/// Why a value is not a resource name or an actor reference.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    #[error("must be <atespace>/<actor> with exactly one slash")]
    Slash,
    #[error("must not be empty")]
    Empty,
    #[error("must be at most 63 characters")]
    TooLong,
    #[error("must use only a-z, 0-9 and '-'")]
    Character,
    #[error("must start and end with a letter or a digit")]
    Edge,
}

/// Checks one resource name: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`.
pub fn check_name(name: &[u8]) -> Result<(), NameError> {
    let (Some(first), Some(last)) = (name.first(), name.last()) else {
        return Err(NameError::Empty);
    };
    if name.len() > MAX_LABEL {
        return Err(NameError::TooLong);
    }
    if !name.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
        return Err(NameError::Character);
    }
    if *first == b'-' || *last == b'-' {
        return Err(NameError::Edge);
    }
    Ok(())
}

/// A checked `<atespace>/<actor>`. Cheap to clone, to compare and to look up: it carries its hash.
#[derive(Clone, Eq)]
pub struct ActorRef {
    text: Arc<str>,
    slash: u8,
    hash: u64,
}

/// A map by actor that computes no hash.
pub(crate) type ByActor<V> = HashMap<ActorRef, V, BuildHasherDefault<Carried>>;

/// Takes hashes for what they are. What else belongs to a key is mixed in.
#[derive(Default)]
pub(crate) struct Carried(u64);

impl Hasher for Carried {
    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(8) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl PartialEq for ActorRef {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Hash for ActorRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialOrd for ActorRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ActorRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl ActorRef {
    /// Parses a header value; nothing is trimmed.
    pub fn parse(value: &[u8]) -> Result<Self, NameError> {
        let slash = memchr::memchr(b'/', value).ok_or(NameError::Slash)?;
        let (atespace, rest) = value.split_at(slash);
        let name = &rest[1..];
        if memchr::memchr(b'/', name).is_some() {
            return Err(NameError::Slash);
        }
        check_name(atespace)?;
        check_name(name)?;
        let text = std::str::from_utf8(value).map_err(|_| NameError::Character)?;
        let slash = u8::try_from(slash).map_err(|_| NameError::TooLong)?;
        // Names are the clients' to choose: nobody outside can tell which ones fall together.
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Ok(Self { text: text.into(), slash, hash: SEED.hash_one(value) })
    }

    /// Builds a reference from its halves.
    pub fn new(atespace: &str, name: &str) -> Result<Self, NameError> {
        Self::parse(format!("{atespace}/{name}").as_bytes())
    }

    #[must_use]
    pub fn atespace(&self) -> &str {
        &self.text[..usize::from(self.slash)]
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[usize::from(self.slash) + 1..]
    }

    /// The same for equal references in this process, and spread evenly.
    pub(crate) fn hash_code(&self) -> u64 {
        self.hash
    }

    /// `<atespace>/<actor>`, as it stands in the header.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ActorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ActorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_reference_gives_both_halves() {
        let actor = ActorRef::parse(b"team-a/agent-7").unwrap();
        assert_eq!((actor.atespace(), actor.name()), ("team-a", "agent-7"));
        assert_eq!(actor.to_string(), "team-a/agent-7");
    }

    #[test]
    fn every_malformed_reference_is_refused() {
        let long = format!("a/{}", "b".repeat(64));
        let cases: &[&[u8]] = &[
            b"",
            b"a",
            b"/",
            b"a/",
            b"/b",
            b"a/b/c",
            b"A/b",
            b"a/B",
            b"a_b/c",
            b"a/-b",
            b"a/b-",
            b"-a/b",
            b" a/b",
            b"a/b ",
            b"a/b\t",
            b"a /b",
            b"a/\xc3\xa9",
            b"a/b,c/d",
            b"a.b/c",
            long.as_bytes(),
        ];
        for case in cases {
            assert!(ActorRef::parse(case).is_err(), "{:?} was accepted", String::from_utf8_lossy(case));
        }
    }

    #[test]
    fn the_longest_names_fit() {
        let name = "x".repeat(63);
        assert!(ActorRef::new(&name, &name).is_ok());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            failure_persistence: None,
            ..proptest::prelude::ProptestConfig::with_cases(4_000)
        })]

        #[test]
        fn a_reference_is_two_labels_and_nothing_else(text in "[a-c0A_. -]{0,3}[/a]{0,2}[a-z0-9-]{0,66}") {
            let label = |label: &str| {
                let bytes = label.as_bytes();
                let inside = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
                (1..=63).contains(&bytes.len())
                    && bytes.iter().all(|b| inside(b) || *b == b'-')
                    && bytes.first().is_some_and(inside)
                    && bytes.last().is_some_and(inside)
            };
            let halves: Vec<&str> = text.split('/').collect();
            let good = halves.len() == 2 && halves.iter().all(|half| label(half));
            let parsed = ActorRef::parse(text.as_bytes());
            proptest::prop_assert_eq!(parsed.is_ok(), good);
            if let Ok(actor) = parsed {
                proptest::prop_assert_eq!(vec![actor.atespace(), actor.name()], halves);
            }
        }
    }
}
