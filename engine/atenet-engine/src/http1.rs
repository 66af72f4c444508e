//! HTTP/1.1 on the wire: heads, bodies, and nothing ambiguous.
//!
//! Our own codec, because a proxy must see what a client library hides: interim answers, a
//! Content-Length beside a Transfer-Encoding, a bare line feed. Everything that decides is free of
//! I/O; [`Reader`] sits at the edge.

#[cfg(test)]
mod anything_tests;
mod body;
mod chunked;
mod encode;
mod fields;
mod framing;
mod head;
mod reader;

pub use body::{BodyDecoder, BodyError, Frame};
pub use encode::{chunk_end, chunk_head, last_chunk, request_head, response_head};
pub use fields::{Fields, Kind, list_members};
pub use framing::{Framing, keep_alive, request_framing, response_framing};
pub use head::{
    HeadError, MAX_FIELDS, RequestHead, ResponseHead, Version, head_end, host_is_sane, parse_request,
    parse_request_within, parse_response, parse_trailers,
};
pub use reader::{ReadError, Reader};
