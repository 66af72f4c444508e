"""Lines of keys, and text that is no configuration."""

import pytest
from atenet.yaml_source import Source, SourceError

TEXT = """\
# a comment
gateways:
  plain:
    port: 8080
routes:
- name: a
- name: b
  matches: [{path: 1}]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("gateways",), 2),
        (("gateways", "plain", "port"), 4),
        (("routes", 1), 7),
        (("routes", 1, "matches", 0, "path"), 8),
        (("gateways", "plain", "missing"), 3),
        (("missing",), None),
        ((), None),
    ],
)
def test_each_key_has_its_line_and_a_missing_one_its_parents(path, line) -> None:
    assert Source(TEXT).line(path) == line


def test_an_empty_text_is_an_empty_mapping() -> None:
    assert Source("# nothing\n").data == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: [", 2, "expected the node content"),
        ("a: 1\n b: 2", 2, "mapping values are not allowed here"),
        ("- a\n", 1, "must be a mapping"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key `a` stands twice"),
        ("a:\n- b: 1\n  b: 2\n", 3, "the key `b` stands twice"),
        ("a: *nowhere\n", 1, "found undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "but found another document"),
        ("a: 1\nb: \x08", 2, "not text: character #x0008"),
        ("a: 2026-13-99\n", None, "month must be in 1..12"),
        ("[" * 5000, None, "not YAML"),
        ("a: !!python/object:os.system 1\n", 1, "could not determine a constructor"),
    ],
)
def test_what_is_no_configuration_is_named_with_its_line(text, line, problem) -> None:
    with pytest.raises(SourceError) as caught:
        Source(text)
    assert problem in caught.value.problem
    assert caught.value.line == line


def test_a_merge_key_may_stand_beside_others() -> None:
    assert Source("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n").data["b"] == {"x": 1, "y": 2}
