//! The host patterns of a rule: a name, `*.` and a name, or `*`.

use thiserror::Error;

use super::host::{HostError, check_name};

/// Why text is no pattern.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum PatternError {
    #[error("must not be empty: a DNS name, '*.' followed by one, or '*'")]
    Empty,
    #[error("must be a host name alone, without scheme, path, user or port")]
    NotAlone,
    #[error("must not be an IP address: addresses are covered by '*' only")]
    Address,
    #[error("must be in lower case")]
    UpperCase,
    #[error("must not end with a dot")]
    FinalDot,
    #[error("must have '*' only as the whole pattern or as its first label, as in '*.example.com'")]
    Star,
    #[error("{0}")]
    Name(HostError),
    #[error("is too wide: '*.' needs a name of two labels or more, as in '*.example.com'")]
    TooWide,
}

/// What a rule's hostname covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// This name.
    Exact(String),
    /// Every name that is one label and a dot longer than this one.
    Suffix(String),
    /// Every name and every address.
    Any,
}

impl Pattern {
    /// Parses the one spelling; nothing is normalised.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        match text.strip_prefix("*.") {
            Some(name) => named(name).map(|name| Self::Suffix(name.to_owned())),
            None => named(text).map(|name| Self::Exact(name.to_owned())),
        }
    }

    /// Whether a person who writes it can mean it: `*.com` covers more than one owner's names.
    pub(super) fn check_width(&self) -> Result<(), PatternError> {
        match self {
            Self::Suffix(name) if !name.contains('.') => Err(PatternError::TooWide),
            _ => Ok(()),
        }
    }
}

fn named(name: &str) -> Result<&str, PatternError> {
    if name.is_empty() {
        return Err(PatternError::Empty);
    }
    if name.parse::<std::net::IpAddr>().is_ok() || name.starts_with('[') {
        return Err(PatternError::Address);
    }
    if name.contains(['/', ':', '@', '?', '#']) {
        return Err(PatternError::NotAlone);
    }
    if name.contains('*') {
        return Err(PatternError::Star);
    }
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(PatternError::UpperCase);
    }
    if name.len() > 1 && name.ends_with('.') {
        return Err(PatternError::FinalDot);
    }
    check_name(name).map_err(PatternError::Name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_told_apart() {
        assert_eq!(Pattern::parse("api.example.com"), Ok(Pattern::Exact("api.example.com".into())));
        assert_eq!(Pattern::parse("*.example.com"), Ok(Pattern::Suffix("example.com".into())));
        assert_eq!(Pattern::parse("*"), Ok(Pattern::Any));
        assert_eq!(Pattern::parse("registry"), Ok(Pattern::Exact("registry".into())));
    }

    #[test]
    fn every_other_form_is_refused_for_its_reason() {
        let cases = [
            ("", PatternError::Empty),
            ("*.", PatternError::Empty),
            ("https://a.example", PatternError::NotAlone),
            ("a.example/x", PatternError::NotAlone),
            ("a.example:443", PatternError::NotAlone),
            ("u@a.example", PatternError::NotAlone),
            ("10.0.0.1", PatternError::Address),
            ("::1", PatternError::Address),
            ("[::1]", PatternError::Address),
            ("*.10.0.0.1", PatternError::Address),
            ("127.1", PatternError::Name(HostError::Numeral)),
            ("0x7f000001", PatternError::Name(HostError::Numeral)),
            ("A.example", PatternError::UpperCase),
            ("a.example.", PatternError::FinalDot),
            ("**", PatternError::Star),
            ("*.*.example.com", PatternError::Star),
            ("a.*.example.com", PatternError::Star),
            ("a*.example.com", PatternError::Star),
            (".example.com", PatternError::Name(HostError::Label)),
            ("a..example", PatternError::Name(HostError::Label)),
            ("-a.example", PatternError::Name(HostError::Label)),
            ("a_b.example", PatternError::Name(HostError::Character)),
            ("a b.example", PatternError::Name(HostError::Character)),
            ("a.example\0", PatternError::Name(HostError::Character)),
            ("bücher.example", PatternError::Name(HostError::Character)),
        ];
        for (text, expected) in cases {
            assert_eq!(Pattern::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_star_over_a_single_label_is_too_wide() {
        assert_eq!(Pattern::parse("*.com").unwrap().check_width(), Err(PatternError::TooWide));
        assert_eq!(Pattern::parse("*.example.com").unwrap().check_width(), Ok(()));
    }
}
