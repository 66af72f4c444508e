//! Where bytes from actors are read into.
//!
//! Most reads are small, and an idle tunnel must hold no buffer. So a read goes through the thread's scratch page and
//! is copied to a chunk of its own size; a stream that fills the page reads into large pooled buffers that go out
//! without a copy and come back when they are written.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Reads below this are copied.
pub(super) const PAGE: usize = 16 * 1024;
/// One bulk read.
pub(super) const BULK: usize = 64 * 1024;
/// Bulk buffers kept for reuse (4 MiB).
const KEPT: usize = 64;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; PAGE].into_boxed_slice());
}

/// Lends this thread's scratch page.
pub(super) fn with_page<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|page| read(page))
}

/// The bulk buffers of one server.
#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Box<[u8]>>>>);

impl Pool {
    pub(super) fn take(&self) -> PooledBuf {
        let bytes = self.0.lock().pop().unwrap_or_else(|| vec![0; BULK].into_boxed_slice());
        PooledBuf { bytes, filled: 0, pool: self.clone() }
    }

    fn give(&self, bytes: Box<[u8]>) {
        let mut free = self.0.lock();
        if free.len() < KEPT {
            free.push(bytes);
        }
    }
}

/// A bulk buffer that goes back to its pool when dropped.
pub(super) struct PooledBuf {
    bytes: Box<[u8]>,
    filled: usize,
    pool: Pool,
}

impl PooledBuf {
    pub(super) fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The first `filled` bytes as a chunk; no copy.
    pub(super) fn into_chunk(mut self, filled: usize) -> Bytes {
        self.filled = filled.min(self.bytes.len());
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for PooledBuf {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Drop for PooledBuf {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_chunk_is_gone() {
        let pool = Pool::default();
        let mut buffer = pool.take();
        buffer.space()[..3].copy_from_slice(b"abc");
        let chunk = buffer.into_chunk(3);
        let part = chunk.slice(1..);
        drop(chunk);
        assert_eq!(pool.0.lock().len(), 0);
        assert_eq!(&part[..], b"bc");
        drop(part);
        assert_eq!(pool.0.lock().len(), 1);
    }

    #[test]
    fn the_pool_keeps_a_bounded_number() {
        let pool = Pool::default();
        let many: Vec<_> = (0..2 * KEPT).map(|_| pool.take()).collect();
        drop(many);
        assert_eq!(pool.0.lock().len(), KEPT);
    }
}
