//! Where Envoy asks: a loopback port, or a Unix socket for one account alone.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::error::EngineError;

/// Bound, and listening.
pub(crate) enum Ear {
    Port(TcpListener),
    Socket(UnixListener, PathBuf),
}

/// One connection of Envoy.
pub(crate) enum Heard {
    Port(TcpStream),
    Socket(UnixStream),
}

impl Ear {
    pub(crate) async fn port(address: SocketAddr) -> Result<Self, EngineError> {
        let listen = |source| EngineError::Listen { name: "ext_proc".into(), address, source };
        TcpListener::bind(address).await.map(Self::Port).map_err(listen)
    }

    /// What an earlier run left there is replaced; anything but a socket is somebody's.
    pub(crate) fn socket(path: &Path) -> Result<Self, EngineError> {
        let listen = |source| {
            let address = path.display().to_string();
            EngineError::Bind { name: "ext_proc".into(), address, source }
        };
        bind(path).map(|listener| Self::Socket(listener, path.to_owned())).map_err(listen)
    }

    /// `ip:port`, or the socket's path.
    pub(crate) fn address(&self) -> io::Result<String> {
        match self {
            Self::Port(listener) => listener.local_addr().map(|address| address.to_string()),
            Self::Socket(_, path) => Ok(path.display().to_string()),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Heard> {
        match self {
            Self::Port(listener) => listener.accept().await.map(|(stream, _)| Heard::Port(stream)),
            Self::Socket(listener, _) => listener.accept().await.map(|(stream, _)| Heard::Socket(stream)),
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        if let Self::Socket(_, path) = self {
            // Somebody may have removed it already.
            let _removed = fs::remove_file(path);
        }
    }
}

/// Nobody else can connect at any moment: it gets its name when it has its mode.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
        _ => {}
    }
    let unnamed = path.with_extension(format!("{}.new", std::process::id()));
    // Of an earlier process with our number.
    let _stale = fs::remove_file(&unnamed);
    let listener = UnixListener::bind(&unnamed)?;
    fs::set_permissions(&unnamed, fs::Permissions::from_mode(0o600))?;
    fs::rename(&unnamed, path)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_for_its_own_account_and_goes_with_its_owner() {
        let directory = std::env::temp_dir().join(format!("atenet-ear-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("e.sock");
        for _ in 0..2 {
            let ear = Ear::socket(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(ear.address().unwrap(), path.display().to_string());
            let (_stream, heard) = tokio::join!(UnixStream::connect(&path), ear.accept());
            assert!(matches!(heard, Ok(Heard::Socket(_))));
            drop(ear);
            assert!(!path.exists());
        }
        fs::write(&path, "somebody's").unwrap();
        assert!(Ear::socket(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        fs::remove_dir_all(&directory).unwrap();
    }
}
