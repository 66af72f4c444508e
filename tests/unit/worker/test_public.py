"""Each package's public surface, pinned."""

from atenet.atelet import snapshot
from atenet.worker import network, sandbox


def test_the_worker_packages_show_what_others_use() -> None:
    assert sorted(network.__all__) == [
        "ACTOR_ADDRESS",
        "Capturing",
        "GATEWAY_ADDRESS",
        "NetworkPair",
        "PairPool",
        "check_prefix",
        "clear_leftovers",
        "hold_prefix",
        "own_addresses",
    ]
    assert sorted(sandbox.__all__) == [
        "Bind",
        "Cgroups",
        "Common",
        "ContainerPlan",
        "DEFAULT_CLASS",
        "Exit",
        "FreezeUnavailableError",
        "Freezer",
        "GvisorSandbox",
        "InvalidTemplateError",
        "Launch",
        "Limits",
        "LimitsUnavailableError",
        "MemoryNotSavedError",
        "MemoryUnusableError",
        "NotNowError",
        "NullSandbox",
        "ProcessSandbox",
        "Sandbox",
        "SandboxGroup",
        "account_of",
        "own_group",
        "plan_containers",
        "volume_directories",
    ]
    for package in (network, sandbox, snapshot):
        assert all(hasattr(package, name) for name in package.__all__)


def test_the_agents_snapshots_show_what_the_agent_uses() -> None:
    assert sorted(snapshot.__all__) == [
        "Manifest",
        "MemoryEntry",
        "SnapshotDamagedError",
        "SnapshotMissingError",
        "SnapshotStore",
        "TooDeepError",
        "check_depth",
    ]
