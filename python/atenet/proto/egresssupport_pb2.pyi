import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from atenet.proto import ateapi_pb2 as _ateapi_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListActorEgressDenialsRequest(_message.Message):
    __slots__ = ("actor",)
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ...) -> None: ...

class ListActorEgressDenialsResponse(_message.Message):
    __slots__ = ("denials", "unanswered")
    DENIALS_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    denials: _containers.RepeatedCompositeFieldContainer[EgressDenial]
    unanswered: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, denials: _Optional[_Iterable[_Union[EgressDenial, _Mapping]]] = ..., unanswered: _Optional[_Iterable[str]] = ...) -> None: ...

class EgressDenial(_message.Message):
    __slots__ = ("first", "last", "times", "kind", "host", "port", "rule", "reason", "detail")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    first: _timestamp_pb2.Timestamp
    last: _timestamp_pb2.Timestamp
    times: int
    kind: str
    host: str
    port: int
    rule: int
    reason: str
    detail: str
    def __init__(self, first: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., times: _Optional[int] = ..., kind: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., rule: _Optional[int] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
