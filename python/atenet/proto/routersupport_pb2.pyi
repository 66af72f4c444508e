from atenet.proto import ateapi_pb2 as _ateapi_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LocateRequest(_message.Message):
    __slots__ = ("actor",)
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ...) -> None: ...

class LocateResponse(_message.Message):
    __slots__ = ("actor",)
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.Actor
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.Actor, _Mapping]] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("synced", "capacity_freed", "assignment_ended")
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FREED_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_ENDED_FIELD_NUMBER: _ClassVar[int]
    synced: Synced
    capacity_freed: CapacityFreed
    assignment_ended: AssignmentEnded
    def __init__(self, synced: _Optional[_Union[Synced, _Mapping]] = ..., capacity_freed: _Optional[_Union[CapacityFreed, _Mapping]] = ..., assignment_ended: _Optional[_Union[AssignmentEnded, _Mapping]] = ...) -> None: ...

class Synced(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CapacityFreed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AssignmentEnded(_message.Message):
    __slots__ = ("actor", "actor_uid", "version")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    version: int
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...
