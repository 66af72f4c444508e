//! Reads of the control plane's SQLite file: one indexed look-up, of what is committed at that moment.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use bytes::{BufMut, Bytes, BytesMut};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::actor_ref::ActorRef;
use crate::config::WarmMethod;
use crate::proto::ActorState;

/// gRPC's frame around a message: a flag and four bytes of length.
const PREFIX: usize = 5;
/// Field 1, length-delimited: the actor in a `ResumeActorResponse`.
const ACTOR_FIELD: u8 = 0x0a;

const ACTOR: &str = "SELECT state, body FROM actors WHERE atespace = ? AND name = ?";
/// Of the incarnation that has the name now.
const POLICY: &str = "SELECT actors.state, policies.body FROM actors \
    JOIN policies ON policies.actor_uid = actors.uid WHERE actors.atespace = ? AND actors.name = ?";

/// How much of the file is mapped at most: as much as SQLite maps of any.
const MAPPED: i64 = 0x7fff_0000;

thread_local! {
    /// A connection each: SQLite's are not to be used by two threads at once.
    static OPEN: RefCell<Option<(PathBuf, Connection)>> = const { RefCell::new(None) };
}

pub(super) struct Actors {
    store: PathBuf,
}

impl Actors {
    pub(super) fn new(store: &Path) -> Self {
        Self { store: store.to_owned() }
    }

    /// The framed answer to that method, or none if it is not for this front to give: no such actor, one that does
    /// not run or has no policy, a store that cannot be read now.
    pub(super) fn answer(&self, method: WarmMethod, actor: &ActorRef) -> Option<Bytes> {
        OPEN.with_borrow_mut(|open| match self.look_up(open, method, actor) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the store cannot be read; the control plane is asked instead");
                *open = None;
                None
            }
        })
    }

    fn look_up(
        &self,
        open: &mut Option<(PathBuf, Connection)>,
        method: WarmMethod,
        actor: &ActorRef,
    ) -> rusqlite::Result<Option<Bytes>> {
        if open.as_ref().is_none_or(|(path, _)| *path != self.store) {
            *open = Some((self.store.clone(), connect(&self.store)?));
        }
        let Some((_, connection)) = open else { return Ok(None) };
        let mut query = connection.prepare_cached(match method {
            WarmMethod::GetActor | WarmMethod::ResumeActor | WarmMethod::Locate => ACTOR,
            WarmMethod::GetActorEgressPolicy => POLICY,
        })?;
        let found = query.query_row([actor.atespace(), actor.name()], |row| {
            let (state, body) = (row.get::<_, i64>(0)?, row.get_ref(1)?.as_blob()?);
            Ok(match method {
                WarmMethod::GetActor | WarmMethod::GetActorEgressPolicy => Some(framed(body, false)),
                WarmMethod::ResumeActor | WarmMethod::Locate => {
                    (state == ActorState::Running as i64).then(|| framed(body, true))
                }
            })
        });
        Ok(found.optional()?.flatten())
    }
}

fn connect(store: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(store, flags)?;
    // Readers do not wait for writers in WAL mode. Where one must, the control plane may do the waiting.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    // A million actors are some hundred thousand pages, none of them hot: mapped, they are read without a system call.
    // A SQLite without maps answers nothing, and reads as ever.
    connection.pragma_update_and_check(None, "mmap_size", MAPPED, |_| Ok(())).optional()?;
    Ok(connection)
}

/// The stored Actor or policy as one gRPC message, by itself or as field 1 of a message that holds nothing else.
fn framed(actor: &[u8], as_field: bool) -> Bytes {
    let mut message = BytesMut::with_capacity(PREFIX + 6 + actor.len());
    message.put_bytes(0, PREFIX);
    if as_field {
        message.put_u8(ACTOR_FIELD);
        prost::encoding::encode_varint(actor.len() as u64, &mut message);
    }
    message.put_slice(actor);
    let length = u32::try_from(message.len() - PREFIX).unwrap_or(u32::MAX);
    message[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    message.freeze()
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::{Actor, ResourceMetadata, ResumeActorResponse};

    #[test]
    fn an_answer_of_any_length_is_one_message() {
        for length in [0, 1, 100, 127, 128, 20_000, 3_000_000] {
            let name = "n".repeat(length);
            let actor = Actor { metadata: Some(ResourceMetadata { name, ..Default::default() }), ..Default::default() };
            let stored = actor.encode_to_vec();
            let (plain, wrapped) = (framed(&stored, false), framed(&stored, true));
            for framed in [&plain, &wrapped] {
                assert_eq!(framed[0], 0);
                assert_eq!(framed[1..5], u32::try_from(framed.len() - 5).unwrap().to_be_bytes());
            }
            assert_eq!(Actor::decode(&plain[5..]).unwrap(), actor);
            let response = ResumeActorResponse::decode(&wrapped[5..]).unwrap();
            assert_eq!((response.actor, response.resumed), (Some(actor), false));
        }
    }
}
