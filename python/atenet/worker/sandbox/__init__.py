"""Where actors run: the interface, the classes, and what they share."""

from atenet.worker.sandbox.account import account_of
from atenet.worker.sandbox.cgroup import Cgroups, LimitsUnavailableError
from atenet.worker.sandbox.freezer import Freezer, FreezeUnavailableError
from atenet.worker.sandbox.gvisor import GvisorSandbox
from atenet.worker.sandbox.interface import (
    DEFAULT_CLASS,
    Exit,
    Launch,
    MemoryNotSavedError,
    MemoryUnusableError,
    NotNowError,
    Sandbox,
    SandboxGroup,
)
from atenet.worker.sandbox.limits import Limits
from atenet.worker.sandbox.null import NullSandbox
from atenet.worker.sandbox.own_group import own_group
from atenet.worker.sandbox.plan import (
    Bind,
    Common,
    ContainerPlan,
    InvalidTemplateError,
    plan_containers,
    volume_directories,
)
from atenet.worker.sandbox.process import ProcessSandbox

__all__ = [
    "DEFAULT_CLASS",
    "Bind",
    "Cgroups",
    "Common",
    "ContainerPlan",
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
