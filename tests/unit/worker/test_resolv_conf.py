import pytest
from atenet.worker import resolv_conf

NODE = """# made by somebody
search example.org
nameserver 10.0.0.2   # with a word behind it
nameserver fe80::1%eth0
nameserver
nameserver not-an-address
options ndots:5
"""


def test_the_nodes_resolvers_are_read_in_their_order() -> None:
    assert resolv_conf.name_servers(NODE) == ["10.0.0.2:53", "[fe80::1]:53"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.2", "10.0.0.2:53"),
        ("10.0.0.2:5353", "10.0.0.2:5353"),
        ("::1", "[::1]:53"),
        ("[::1]", "[::1]:53"),
        ("[::1]:54", "[::1]:54"),
    ],
)
def test_a_resolver_is_an_address_with_or_without_a_port(text: str, address: str) -> None:
    assert resolv_conf.resolver_address(text) == address


@pytest.mark.parametrize("text", ["", "a.example", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:70000"])
def test_anything_else_is_no_resolver(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|IPv4"):
        resolv_conf.resolver_address(text)
