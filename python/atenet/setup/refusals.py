"""What the API server refuses, as a diagnosis: the object, its reason, and what to do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atenet.errors import AteError
from atenet.setup.kinds import Reference

if TYPE_CHECKING:
    from lightkube import ApiError

__all__ = ["Refused", "hint_for", "refusal"]


class Refused(AteError):
    """`which`: the object; `code`: of HTTP."""

    def __init__(self, which: Reference, code: int, message: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.which = which
        self.code = code


def refusal(which: Reference, error: ApiError) -> Refused:
    """Of one answer."""
    status = error.status
    code = int(status.code or 0)
    reason = str(status.reason or code)
    said = str(status.message or "")
    return Refused(which, code, f"{which}: {reason}: {said}", hint_for(code, reason, said))


_BY_WORDS = (
    # Words of the server's message, and what helps.
    (
        "exceeded quota",
        "raise the ResourceQuota of that namespace, or ask for less (resources, ...Replicas)",
    ),
    (
        "violates PodSecurity",
        "the namespace's pod-security.kubernetes.io/enforce label is stricter than the pod; ate-setup sets it: "
        "was it changed, or is there a cluster-wide default that forbids privileged namespaces?",
    ),
    ("is being terminated", "an uninstall is still going on: wait for the namespace to be gone"),
    ("already allocated", "another Service has that node port"),
    ("failed calling webhook", "an admission webhook of this cluster does not answer"),
    ("denied the request", "an admission webhook of this cluster refuses it; its words are above"),
    (
        "is attempting to grant",
        "whoever installs needs every right that it gives: use a cluster-admin",
    ),
)


def hint_for(code: int, reason: str, said: str) -> str | None:
    """What to do about it."""
    for words, hint in _BY_WORDS:
        if words in said:
            return hint
    if code == 401:
        return "the kubeconfig's credentials are not accepted: expired, or of another cluster?"
    if code == 403:
        return "whoever installs needs to be a cluster-admin: it makes roles, namespaces and a custom resource"
    if code == 409 and reason == "Conflict":
        return (
            "somebody else manages that field (kubectl edit, an autoscaler, a GitOps tool): "
            "take it out there, or overrule it with --force-conflicts"
        )
    if code == 404 and "could not find the requested resource" in said:
        return (
            "the cluster does not know this kind yet: is its version of Kubernetes 1.30 or newer?"
        )
    if code == 422:
        return "the cluster does not accept a value of it; the field is named above"
    return None
