from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class FetchSecretRequest(_message.Message):
    __slots__ = ("uri", "actor_spiffe_id")
    URI_FIELD_NUMBER: _ClassVar[int]
    ACTOR_SPIFFE_ID_FIELD_NUMBER: _ClassVar[int]
    uri: str
    actor_spiffe_id: str
    def __init__(self, uri: _Optional[str] = ..., actor_spiffe_id: _Optional[str] = ...) -> None: ...

class FetchSecretResponse(_message.Message):
    __slots__ = ("opaque_bytes",)
    OPAQUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    opaque_bytes: bytes
    def __init__(self, opaque_bytes: _Optional[bytes] = ...) -> None: ...
