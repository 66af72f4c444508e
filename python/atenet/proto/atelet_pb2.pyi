from atenet.proto import ateapi_pb2 as _ateapi_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActorHandle(_message.Message):
    __slots__ = ("actor", "actor_uid", "worker", "worker_epoch")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    WORKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    worker: str
    worker_epoch: int
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ..., worker: _Optional[str] = ..., worker_epoch: _Optional[int] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("handle", "template")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    template: _ateapi_pb2.ActorTemplate
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ..., template: _Optional[_Union[_ateapi_pb2.ActorTemplate, _Mapping]] = ...) -> None: ...

class RunResponse(_message.Message):
    __slots__ = ("timings",)
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    timings: StartTimings
    def __init__(self, timings: _Optional[_Union[StartTimings, _Mapping]] = ...) -> None: ...

class RestoreRequest(_message.Message):
    __slots__ = ("handle", "template", "snapshot_uri", "content_scope", "local_snapshot_name")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_URI_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SCOPE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SNAPSHOT_NAME_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    template: _ateapi_pb2.ActorTemplate
    snapshot_uri: str
    content_scope: _ateapi_pb2.SnapshotContentScope
    local_snapshot_name: str
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ..., template: _Optional[_Union[_ateapi_pb2.ActorTemplate, _Mapping]] = ..., snapshot_uri: _Optional[str] = ..., content_scope: _Optional[_Union[_ateapi_pb2.SnapshotContentScope, str]] = ..., local_snapshot_name: _Optional[str] = ...) -> None: ...

class RestoreResponse(_message.Message):
    __slots__ = ("timings",)
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    timings: StartTimings
    def __init__(self, timings: _Optional[_Union[StartTimings, _Mapping]] = ...) -> None: ...

class StartTimings(_message.Message):
    __slots__ = ("fetch_ms", "network_ms", "sandbox_ms", "ready_ms", "activate_ms", "egress_ms")
    FETCH_MS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_MS_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_MS_FIELD_NUMBER: _ClassVar[int]
    READY_MS_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_MS_FIELD_NUMBER: _ClassVar[int]
    EGRESS_MS_FIELD_NUMBER: _ClassVar[int]
    fetch_ms: float
    network_ms: float
    sandbox_ms: float
    ready_ms: float
    activate_ms: float
    egress_ms: float
    def __init__(self, fetch_ms: _Optional[float] = ..., network_ms: _Optional[float] = ..., sandbox_ms: _Optional[float] = ..., ready_ms: _Optional[float] = ..., activate_ms: _Optional[float] = ..., egress_ms: _Optional[float] = ...) -> None: ...

class CheckpointRequest(_message.Message):
    __slots__ = ("handle", "snapshot_uri", "content_scope", "if_idle_ms", "template_uid", "local_snapshot_name")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_URI_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SCOPE_FIELD_NUMBER: _ClassVar[int]
    IF_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_UID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SNAPSHOT_NAME_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    snapshot_uri: str
    content_scope: _ateapi_pb2.SnapshotContentScope
    if_idle_ms: int
    template_uid: str
    local_snapshot_name: str
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ..., snapshot_uri: _Optional[str] = ..., content_scope: _Optional[_Union[_ateapi_pb2.SnapshotContentScope, str]] = ..., if_idle_ms: _Optional[int] = ..., template_uid: _Optional[str] = ..., local_snapshot_name: _Optional[str] = ...) -> None: ...

class CheckpointResponse(_message.Message):
    __slots__ = ("found_stopped", "in_use", "kept_running", "content_scope", "memory_lost")
    FOUND_STOPPED_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    KEPT_RUNNING_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SCOPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LOST_FIELD_NUMBER: _ClassVar[int]
    found_stopped: bool
    in_use: bool
    kept_running: str
    content_scope: _ateapi_pb2.SnapshotContentScope
    memory_lost: bool
    def __init__(self, found_stopped: _Optional[bool] = ..., in_use: _Optional[bool] = ..., kept_running: _Optional[str] = ..., content_scope: _Optional[_Union[_ateapi_pb2.SnapshotContentScope, str]] = ..., memory_lost: _Optional[bool] = ...) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ("handle", "local_snapshot_name", "template_uid")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SNAPSHOT_NAME_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_UID_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    local_snapshot_name: str
    template_uid: str
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ..., local_snapshot_name: _Optional[str] = ..., template_uid: _Optional[str] = ...) -> None: ...

class PauseResponse(_message.Message):
    __slots__ = ("stored", "kept_running")
    STORED_FIELD_NUMBER: _ClassVar[int]
    KEPT_RUNNING_FIELD_NUMBER: _ClassVar[int]
    stored: bool
    kept_running: str
    def __init__(self, stored: _Optional[bool] = ..., kept_running: _Optional[str] = ...) -> None: ...

class ThawRequest(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ...) -> None: ...

class ThawResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TerminateRequest(_message.Message):
    __slots__ = ("handle", "local_snapshot_name")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_SNAPSHOT_NAME_FIELD_NUMBER: _ClassVar[int]
    handle: ActorHandle
    local_snapshot_name: str
    def __init__(self, handle: _Optional[_Union[ActorHandle, _Mapping]] = ..., local_snapshot_name: _Optional[str] = ...) -> None: ...

class TerminateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForgetTemplateRequest(_message.Message):
    __slots__ = ("template_uid",)
    TEMPLATE_UID_FIELD_NUMBER: _ClassVar[int]
    template_uid: str
    def __init__(self, template_uid: _Optional[str] = ...) -> None: ...

class ForgetTemplateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LookUpWorkerRequest(_message.Message):
    __slots__ = ("worker", "worker_epoch")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    WORKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    worker: str
    worker_epoch: int
    def __init__(self, worker: _Optional[str] = ..., worker_epoch: _Optional[int] = ...) -> None: ...

class LookUpWorkerResponse(_message.Message):
    __slots__ = ("alive",)
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    alive: bool
    def __init__(self, alive: _Optional[bool] = ...) -> None: ...

class RegisterWorkerRequest(_message.Message):
    __slots__ = ("worker", "capacity", "hosted_actor_uids", "socket_path", "activity")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    HOSTED_ACTOR_UIDS_FIELD_NUMBER: _ClassVar[int]
    SOCKET_PATH_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    worker: _ateapi_pb2.Worker
    capacity: _ateapi_pb2.WorkerResources
    hosted_actor_uids: _containers.RepeatedScalarFieldContainer[str]
    socket_path: str
    activity: _containers.RepeatedCompositeFieldContainer[_ateapi_pb2.ActorActivity]
    def __init__(self, worker: _Optional[_Union[_ateapi_pb2.Worker, _Mapping]] = ..., capacity: _Optional[_Union[_ateapi_pb2.WorkerResources, _Mapping]] = ..., hosted_actor_uids: _Optional[_Iterable[str]] = ..., socket_path: _Optional[str] = ..., activity: _Optional[_Iterable[_Union[_ateapi_pb2.ActorActivity, _Mapping]]] = ...) -> None: ...

class RegisterWorkerResponse(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: _ateapi_pb2.Worker
    def __init__(self, worker: _Optional[_Union[_ateapi_pb2.Worker, _Mapping]] = ...) -> None: ...

class MintActorCertificateRequest(_message.Message):
    __slots__ = ("actor_atespace", "actor_name", "actor_uid", "certificate_signing_request")
    ACTOR_ATESPACE_FIELD_NUMBER: _ClassVar[int]
    ACTOR_NAME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_SIGNING_REQUEST_FIELD_NUMBER: _ClassVar[int]
    actor_atespace: str
    actor_name: str
    actor_uid: str
    certificate_signing_request: bytes
    def __init__(self, actor_atespace: _Optional[str] = ..., actor_name: _Optional[str] = ..., actor_uid: _Optional[str] = ..., certificate_signing_request: _Optional[bytes] = ...) -> None: ...

class MintActorCertificateResponse(_message.Message):
    __slots__ = ("actor_certificates",)
    ACTOR_CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    actor_certificates: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, actor_certificates: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GetActorEgressPoliciesRequest(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: _containers.RepeatedCompositeFieldContainer[_ateapi_pb2.KnownEgressPolicy]
    def __init__(self, known: _Optional[_Iterable[_Union[_ateapi_pb2.KnownEgressPolicy, _Mapping]]] = ...) -> None: ...

class GetActorEgressPoliciesResponse(_message.Message):
    __slots__ = ("present",)
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    present: _containers.RepeatedCompositeFieldContainer[_ateapi_pb2.PresentEgressPolicy]
    def __init__(self, present: _Optional[_Iterable[_Union[_ateapi_pb2.PresentEgressPolicy, _Mapping]]] = ...) -> None: ...

class RequestActorSuspendRequest(_message.Message):
    __slots__ = ("actor", "actor_uid")
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTOR_UID_FIELD_NUMBER: _ClassVar[int]
    actor: _ateapi_pb2.ObjectRef
    actor_uid: str
    def __init__(self, actor: _Optional[_Union[_ateapi_pb2.ObjectRef, _Mapping]] = ..., actor_uid: _Optional[str] = ...) -> None: ...

class RequestActorSuspendResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
