//! Where a credential is kept: `ate-secret://<provider class>/<provider name>/<tail>`.

use thiserror::Error;

use super::host::check_name;

const SCHEME: &str = "ate-secret://";
const MAX_URI: usize = 1024;

/// Why text is no credential URI.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum CredentialUriError {
    #[error("must start with ate-secret://")]
    Scheme,
    #[error("must be at most 1024 characters")]
    TooLong,
    #[error("must name a provider class that is a lower-case DNS name, without port or user")]
    Class,
    #[error("must have the form ate-secret://<provider class>/<provider name>/<path>")]
    Parts,
    #[error(
        "must have path segments of letters, digits, '-', '.', '_' and '~': no query, fragment, percent sign, empty segment or final slash"
    )]
    Segment,
}

/// A checked credential URI.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CredentialUri {
    text: String,
    class_end: usize,
}

impl CredentialUri {
    /// Parses the one spelling; nothing is normalised.
    pub fn parse(text: &str) -> Result<Self, CredentialUriError> {
        let rest = text.strip_prefix(SCHEME).ok_or(CredentialUriError::Scheme)?;
        if text.len() > MAX_URI {
            return Err(CredentialUriError::TooLong);
        }
        let (class, path) = rest.split_once('/').ok_or(CredentialUriError::Parts)?;
        check_name(class).map_err(|_| CredentialUriError::Class)?;
        let segment = |s: &str| !s.is_empty() && s != "." && s != ".." && s.bytes().all(is_unreserved);
        if !path.split('/').all(segment) {
            return Err(CredentialUriError::Segment);
        }
        if !path.contains('/') {
            return Err(CredentialUriError::Parts);
        }
        Ok(Self { text: text.to_owned(), class_end: SCHEME.len() + class.len() })
    }

    /// The provider class, by which the provider is chosen.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.text[SCHEME.len()..self.class_end]
    }

    /// The segments behind the class: the provider's name, then one or more of its own.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.text[self.class_end + 1..].split('/')
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// RFC 3986, section 2.3.
fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_class_is_found() {
        let uri = CredentialUri::parse("ate-secret://kubernetes.io/main/team-a/token/key").unwrap();
        assert_eq!(uri.class(), "kubernetes.io");
        assert_eq!(uri.path().collect::<Vec<_>>(), ["main", "team-a", "token", "key"]);
        assert_eq!(uri.as_str(), "ate-secret://kubernetes.io/main/team-a/token/key");
    }

    #[test]
    fn every_other_form_is_refused_for_its_reason() {
        use CredentialUriError as E;
        let cases = [
            ("", E::Scheme),
            ("https://a.io/b/c", E::Scheme),
            ("ATE-SECRET://a.io/b/c", E::Scheme),
            ("ate-secret:///b/c", E::Class),
            ("ate-secret://a.io:1/b/c", E::Class),
            ("ate-secret://u@a.io/b/c", E::Class),
            ("ate-secret://A.io/b/c", E::Class),
            ("ate-secret://10.0.0.1/b/c", E::Class),
            ("ate-secret://a.io", E::Parts),
            ("ate-secret://a.io/b", E::Parts),
            ("ate-secret://a.io/", E::Segment),
            ("ate-secret://a.io/b/", E::Segment),
            ("ate-secret://a.io/b//c", E::Segment),
            ("ate-secret://a.io/b/../c", E::Segment),
            ("ate-secret://a.io/b/c?d", E::Segment),
            ("ate-secret://a.io/b/c#d", E::Segment),
            ("ate-secret://a.io/b/%63", E::Segment),
            ("ate-secret://a.io/b/c d", E::Segment),
            ("ate-secret://a.io/b/c\n", E::Segment),
        ];
        for (text, expected) in cases {
            assert_eq!(CredentialUri::parse(text), Err(expected), "{text:?}");
        }
        let long = format!("ate-secret://a.io/b/{}", "c".repeat(MAX_URI));
        assert_eq!(CredentialUri::parse(&long), Err(E::TooLong));
    }
}
