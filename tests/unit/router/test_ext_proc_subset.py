"""Our subsets of Envoy's external processing APIs have Envoy's names and numbers."""

import tempfile
from pathlib import Path

import grpc_tools
import pytest
from atenet.router.envoy_api import pool
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from grpc_tools import protoc

ROOT = Path(__file__).parents[3]
PACKAGE = "envoy.service.ext_proc.v3"
CONNECTIONS = "envoy.service.network_ext_proc.v3"
FILES = {PACKAGE: "external_processor.proto", CONNECTIONS: "network_external_processor.proto"}
# Where the whole API has the messages that our one file repeats.
ELSEWHERE = {
    "HeaderMap": "envoy.config.core.v3",
    "HeaderValue": "envoy.config.core.v3",
    "HeaderValueOption": "envoy.config.core.v3",
    "HttpStatus": "envoy.type.v3",
    "ProcessingMode": "envoy.extensions.filters.http.ext_proc.v3",
}
# An enum there, its number here.
NUMBERS_OF_ENUMS = {
    "HttpStatus.code",
    "HeaderValueOption.append_action",
    "ProcessingMode.request_header_mode",
    "ProcessingMode.response_header_mode",
    "ProcessingMode.request_trailer_mode",
    "ProcessingMode.response_trailer_mode",
    "ProcessingResponse.connection_status",
}


def subset(package: str) -> descriptor_pb2.FileDescriptorProto:
    include = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.NamedTemporaryFile() as out:
        code = protoc.main(
            [
                "protoc",
                f"-I{ROOT / 'proto' / 'envoy-ext-proc'}",
                f"-I{include}",
                f"--descriptor_set_out={out.name}",
                FILES[package],
            ]
        )
        assert code == 0
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]


@pytest.mark.parametrize(("package", "fields"), [(PACKAGE, 33), (CONNECTIONS, 7)])
def test_every_field_has_envoys_number_and_type(package: str, fields: int) -> None:
    ours = subset(package)
    assert ours.package == package
    checked = 0
    for message in ours.message_type:
        home = ELSEWHERE.get(message.name, package)
        whole = pool().FindMessageTypeByName(f"{home}.{message.name}")
        for field in message.field:
            theirs = whole.fields_by_name[field.name]
            name = f"{message.name}.{field.name}"
            assert theirs.number == field.number, name
            if name in NUMBERS_OF_ENUMS:
                assert theirs.type == FieldDescriptor.TYPE_ENUM, name
            else:
                assert theirs.type == field.type, name
            assert theirs.is_repeated == (field.label == field.LABEL_REPEATED), name
            checked += 1
    assert checked == fields


@pytest.mark.parametrize(
    ("package", "name"),
    [(PACKAGE, "ExternalProcessor"), (CONNECTIONS, "NetworkExternalProcessor")],
)
def test_the_service_is_envoys(package: str, name: str) -> None:
    (service,) = subset(package).service
    assert service.name == name
    (method,) = service.method
    assert (method.name, method.client_streaming, method.server_streaming) == (
        "Process",
        True,
        True,
    )
