"""From values file, variables and flags to one configuration; every fault is named by where it was written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from atenet.cli.failure import BadInput
from atenet.setup.config import Config
from atenet.setup.flags import VARIABLES, flag_fields
from atenet.setup.inventory import values_of
from atenet.setup.main import COMMANDS, ate_setup
from atenet.setup.sources import camel, config_from, read_values
from click.testing import CliRunner, Result

from tests.unit.setup.rendered import CLIENT, FULL, OWN, config

LEAST = ["--ingress-allowed-spiffe-ids", CLIENT, "--snapshots", "s3://bucket/prefix"]


def manifests(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(ate_setup, ["manifests", *words], env=variables)


def replicas(result: Result, name: str = "atenet-router") -> int:
    assert result.exit_code == 0, result.output + repr(result.exception)
    (found,) = (
        each
        for each in yaml.safe_load_all(result.stdout)
        if each["kind"] == "Deployment" and each["metadata"]["name"] == name
    )
    count: int = found["spec"]["replicas"]
    return count


def refused(text: str, tmp_path: Path) -> str:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        config_from({}, read_values(file), file=str(file))
    return str(caught.value).replace(str(file), "FILE")


def test_flags_win_over_variables_and_these_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("routerReplicas: 3\negressReplicas: 3\napiReplicas: 3\n")
    done = manifests(
        *LEAST,
        *("-f", str(file), "--router-replicas", "5"),
        ATE_SETUP_ROUTER_REPLICAS="4",
        ATE_SETUP_EGRESS_REPLICAS="4",
    )
    assert [replicas(done, name) for name in ("atenet-router", "atenet-egress", "ateapi")] == [
        5,
        4,
        3,
    ]


def test_all_of_it_may_come_from_variables(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("routerReplicas: 3\n")
    done = manifests(
        ATE_SETUP_INGRESS_ALLOWED_SPIFFE_IDS=f"{CLIENT},spiffe://cluster.local/ns/b/sa/b",
        ATE_SETUP_SNAPSHOTS="s3://bucket",
        ATE_SETUP_VALUES=str(file),
    )
    assert replicas(done) == 3
    assert f"--ingress-allowed-spiffe-ids={CLIENT},spiffe://cluster.local/ns/b/sa/b" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "routerReplica: 3\n",
            "FILE:1: routerReplica: unknown key; did you mean `routerReplicas`?",
        ),
        (
            "snapshots: s3://bucket\nresources:\n  envoi: {}\n",
            "FILE:3: resources.envoi: unknown key; did you mean `envoy`?",
        ),
        (
            "pools:\n- name: a\n- name: b\n  slot: 4\n",
            "FILE:4: pools[1].slot: unknown key; did you mean `slots`?",
        ),
        (
            "atenetDataplane: nginx\n",
            "FILE:1: atenetDataplane: input should be 'envoy' or 'agentgateway'",
        ),
        (
            "\nrouterReplicas: 0\n",
            "FILE:2: routerReplicas: input should be greater than or equal to 1",
        ),
        ("drainDelay: soon\n", "FILE:1: drainDelay: 'soon' is not a duration such as 5s or 250ms"),
        (
            "pools:\n- name: default\n",
            "FILE:2: pools[0].name: default is the account of every pod",
        ),
        ("pools:\n- name: A_b\n", "FILE:2: pools[0].name: 'A_b' is no name"),
        (
            "resources:\n  envoy:\n    limits: {memory: lots}\n",
            "FILE:3: resources.envoy.limits: memory: 'lots' is no quantity",
        ),
        (
            "snapshots: /var/lib/ate\n",
            "FILE:1: snapshots: '/var/lib/ate' is not s3://bucket/prefix",
        ),
        (
            "pools:\n- name: a\n  namespace: elsewhere\n",
            "FILE: pool a: its namespace elsewhere is not among workerNamespaces",
        ),
        (
            "credentialAllow:\n- team\n",
            "FILE:1: credentialAllow: 'team' must be ATESPACE=NAMESPACE",
        ),
        (
            "credentialAllow: [team=team-secrets, 'team=*']\n",
            "FILE:1: credentialAllow: '*' is no name",
        ),
        ("credentialClass: Kube_1\n", "FILE:1: credentialClass: 'Kube_1' is no DNS name"),
        (
            "credentialAllow: [team=ate-system]\n",
            "FILE: credentialAllow must not have ate-system: its Secrets are keys of the installation",
        ),
        (
            "credentialAllow: [team=ate-workers]\n",
            "FILE: credentialAllow must not have ate-workers",
        ),
        (
            "credentialAllow: [team=a]\ncredentialProvider: {address: 'b:1', uriAuthority: c}\n",
            "FILE: credentialAllow and credentialProvider are two answers to one question",
        ),
        (
            "workerNamespaces: [ate-system, ate-workers]\n",
            "FILE: workerNamespaces must not have ate-system",
        ),
        ("a: 1\na: 2\n", "FILE:2: the key `a` stands twice"),
        ("a: [\n", "FILE:2: "),
        (
            "credentialProvider:\n  address: nowhere\n  uriAuthority: x\n",
            "FILE:2: credentialProvider.address: 'nowhere' is not host:port",
        ),
    ],
)
def test_a_fault_in_the_file_is_told_with_line_and_key(
    text: str, said: str, tmp_path: Path
) -> None:
    assert said in refused(text, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--ingress-allowed-spiffe-ids", "frontend"],
            "--ingress-allowed-spiffe-ids: 'frontend' is not a SPIFFE ID",
        ),
        (["--drain-delay", "x"], "--drain-delay: 'x' is not a duration"),
        (
            ["--router-replicas", "0"],
            "--router-replicas: input should be greater than or equal to 1",
        ),
        (["--snapshots", "gs://bucket"], "--snapshots: 'gs://bucket' is not s3://bucket/prefix"),
    ],
)
def test_a_fault_of_a_flag_is_told_by_the_flag(words: list[str], said: str) -> None:
    done = manifests(*LEAST, *words)
    assert isinstance(done.exception, BadInput)
    assert said in str(done.exception)


def test_another_namespace_is_refused_with_the_reason() -> None:
    """B151: names are in every certificate, so an installation elsewhere would look healthy and never work."""
    done = manifests(*LEAST, "--namespace", "my-atenet")
    assert isinstance(done.exception, BadInput)
    said = str(done.exception)
    assert "--namespace: must be ate-system" in said
    assert "api.ate-system.svc" in said


def test_envoy_without_clients_is_refused() -> None:
    done = manifests("--snapshots", "s3://bucket")
    assert "--ingress-allowed-spiffe-ids names nobody" in str(done.exception)
    native = manifests("--snapshots", "s3://bucket", "--atenet-dataplane", "agentgateway")
    assert native.exit_code == 0


def test_a_switch_is_one_key_over_what_was_installed() -> None:
    installed = values_of(config(**FULL))
    switched = config_from({"atenet_dataplane": "agentgateway"}, below=installed)
    assert switched == config("agentgateway", **FULL)
    assert values_of(switched) == {**installed, "atenetDataplane": "agentgateway"}


def test_what_is_stored_of_a_configuration_is_the_whole_of_it() -> None:
    for given in (config(), config("agentgateway"), config(**FULL), config(**OWN)):
        assert config_from({}, below=values_of(given)) == given


def test_an_installation_is_told_to_give_no_secrets_any_more_by_an_empty_list() -> None:
    shown = manifests(*LEAST, "--credential-allow", "", ATE_SETUP_CREDENTIAL_ALLOW="team=a")
    assert "ate-credentials" not in shown.stdout
    assert "ate-credentials" in manifests(*LEAST, ATE_SETUP_CREDENTIAL_ALLOW="team=a").stdout
    off = config_from({"credential_allow": []}, below=values_of(config(**OWN)))
    assert off.provider is None


def test_every_scalar_is_a_flag_and_a_variable() -> None:
    shown = CliRunner().invoke(ate_setup, ["install", "--help"]).output
    text = re.sub(r"\s+", "", shown)
    for name in flag_fields():
        assert f"--{name.replace('_', '-')}" in text
        assert f"{VARIABLES}{name.upper()}" in text
    nested = {camel(name) for name in set(Config.model_fields) - set(flag_fields())}
    assert nested == {
        *("people", "credentialProvider", "pools", "images", "resources"),
        *("scheduling", "nodeScheduling", "routerServiceAnnotations"),
    }


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_command_says_of_itself_what_the_list_says(name: str) -> None:
    context = ate_setup.make_context("ate-setup", ["status"])
    command = ate_setup.get_command(context, name)
    assert command is not None
    told: Any = COMMANDS[name][2]
    assert (command.help or "").split("\n")[0].startswith(told.removesuffix("."))


def test_manifests_load_neither_the_engine_nor_the_client() -> None:
    """They are to be there in under a second."""
    import subprocess
    import sys

    code = (
        "import sys; from atenet.setup.main import ate_setup; "
        f"ate_setup(['manifests', *{LEAST!r}], standalone_mode=False); "
        "print(sorted({'atenet._engine', 'lightkube', 'grpc', 'cryptography'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
