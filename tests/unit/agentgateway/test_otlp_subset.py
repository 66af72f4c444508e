"""proto/otlp/trace.proto keeps OTLP's own names and numbers."""

from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

SOURCE = Path(__file__).parents[3] / "proto" / "otlp"
WHOLE = (trace_service_pb2, trace_pb2, resource_pb2, common_pb2)


def messages(file: descriptor_pb2.FileDescriptorProto) -> dict[str, descriptor_pb2.DescriptorProto]:
    found = {}
    waiting = [("", message) for message in file.message_type]
    while waiting:
        prefix, message = waiting.pop()
        found[prefix + message.name] = message
        waiting += [(f"{prefix}{message.name}.", nested) for nested in message.nested_type]
    return found


def ours(tmp_path: Path) -> dict[str, descriptor_pb2.DescriptorProto]:
    target = tmp_path / "set.pb"
    assert (
        protoc.main(["protoc", f"-I{SOURCE}", f"--descriptor_set_out={target}", "trace.proto"]) == 0
    )
    return messages(descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file[0])


def test_every_field_has_otlps_number_and_type(tmp_path: Path) -> None:
    whole = {}
    for module in WHOLE:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        whole |= messages(file)
    subset = ours(tmp_path)
    assert subset
    for name, message in subset.items():
        known = {field.name: field for field in whole[name].field}
        for field in message.field:
            expected = known[field.name]
            assert (field.number, field.type, field.label) == (
                expected.number,
                expected.type,
                expected.label,
            ), f"{name}.{field.name}"
        for enum in message.enum_type:
            same = next(other for other in whole[name].enum_type if other.name == enum.name)
            values = {value.name: value.number for value in same.value}
            assert all(values[value.name] == value.number for value in enum.value)
