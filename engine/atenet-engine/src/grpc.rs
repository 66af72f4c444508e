//! gRPC's frame around a message: whether it is compressed, and its length.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

pub(crate) const PREFIX: usize = 5;

/// The message as a body, or as a part of one.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut body = BytesMut::with_capacity(PREFIX + length);
    body.put_u8(0);
    body.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut body);
    body.freeze()
}

/// How long the first message of these bytes is, its frame included; none until the frame is there. An error says
/// what is wrong with it.
pub(crate) fn extent(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
    if prefix[0] != 0 {
        return Err("is compressed, which was not asked for");
    }
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    Ok(Some(PREFIX + length as usize))
}

/// Both, without a copy while there is only one.
pub(crate) fn joined(first: Bytes, more: Bytes) -> Bytes {
    if first.is_empty() {
        return more;
    }
    let mut both = BytesMut::from(first);
    both.extend_from_slice(&more);
    both.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ObjectRef;

    #[test]
    fn a_frame_tells_the_extent_of_its_message() {
        let body = framed(&ObjectRef { atespace: "team".into(), name: "agent".into() });
        assert_eq!(extent(&body), Ok(Some(body.len())));
        for cut in 0..PREFIX {
            assert_eq!(extent(&body[..cut]), Ok(None));
        }
        assert!(extent(b"\x01\0\0\0\0").is_err());
    }
}
