from atenet.proto import ateapi_pb2 as _ateapi_pb2
from atenet.proto import atelet_pb2 as _atelet_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunWorkloadRequest(_message.Message):
    __slots__ = ("actor", "actor_uid", "template", "actor_dir", "egress_gateway", "memory", "golden")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    ACTOR_DIR_FIELD_NUMBER: _ClassVar[int]
    EGRESS_GATEWAY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GOLDEN_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    template: _ateapi_pb2.ActorTemplate
    actor_dir: str
    egress_gateway: EgressGateway
    memory: Memory
    golden: bool
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ..., template: _Optional[_Union[_ateapi_pb2.ActorTemplate, _Mapping]] = ..., actor_dir: _Optional[str] = ..., egress_gateway: _Optional[_Union[EgressGateway, _Mapping]] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., golden: _Optional[bool] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("directory", "runtime_version", "machine", "cpu_features", "roots", "newest")
    class RootsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSION_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    CPU_FEATURES_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    directory: str
    runtime_version: str
    machine: str
    cpu_features: _containers.RepeatedScalarFieldContainer[str]
    roots: _containers.ScalarMap[str, str]
    newest: bool
    def __init__(self, directory: _Optional[str] = ..., runtime_version: _Optional[str] = ..., machine: _Optional[str] = ..., cpu_features: _Optional[_Iterable[str]] = ..., roots: _Optional[_Mapping[str, str]] = ..., newest: _Optional[bool] = ...) -> None: ...

class EgressGateway(_message.Message):
    __slots__ = ("address",)
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    address: str
    def __init__(self, address: _Optional[str] = ...) -> None: ...

class RunWorkloadResponse(_message.Message):
    __slots__ = ("timings",)
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    timings: _atelet_pb2.StartTimings
    def __init__(self, timings: _Optional[_Union[_atelet_pb2.StartTimings, _Mapping]] = ...) -> None: ...

class CheckpointWorkloadRequest(_message.Message):
    __slots__ = ("actor", "actor_uid", "if_idle_ms", "content_scope", "memory_dir")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    IF_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SCOPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_DIR_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    if_idle_ms: int
    content_scope: _ateapi_pb2.SnapshotContentScope
    memory_dir: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ..., if_idle_ms: _Optional[int] = ..., content_scope: _Optional[_Union[_ateapi_pb2.SnapshotContentScope, str]] = ..., memory_dir: _Optional[str] = ...) -> None: ...

class CheckpointWorkloadResponse(_message.Message):
    __slots__ = ("found_stopped", "in_use", "memory")
    FOUND_STOPPED_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    found_stopped: bool
    in_use: bool
    memory: Memory
    def __init__(self, found_stopped: _Optional[bool] = ..., in_use: _Optional[bool] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ...) -> None: ...

class PauseWorkloadRequest(_message.Message):
    __slots__ = ("actor", "actor_uid")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ...) -> None: ...

class PauseWorkloadResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ThawWorkloadRequest(_message.Message):
    __slots__ = ("actor", "actor_uid")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ...) -> None: ...

class ThawWorkloadResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TerminateWorkloadRequest(_message.Message):
    __slots__ = ("actor", "actor_uid")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ...) -> None: ...

class TerminateWorkloadResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListWorkloadsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListWorkloadsResponse(_message.Message):
    __slots__ = ("workloads",)
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    workloads: _containers.RepeatedCompositeFieldContainer[Workload]
    def __init__(self, workloads: _Optional[_Iterable[_Union[Workload, _Mapping]]] = ...) -> None: ...

class Workload(_message.Message):
    __slots__ = ("actor", "actor_uid", "state")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    state: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...
