"""HCL2 as Nomad reads it. The expected values are what `nomad job run -output` of Nomad 1.0.18 printed."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from yurt.convert import Source
from yurt.convert.nomad.from_hcl import jobs_from_hcl
from yurt.errors import UsageError

TOP = """
variable "t" {
  default = "text"
}
variable "l" {
  default = ["x", "y"]
}
variable "m" {
  default = {
    k = "v"
  }
}
locals {
  n = 3
  b = true
  o = { inner = { x = "deep" }, list = [1, 2] }
}
"""

VALUES = [
    (r'"a\tb\n\"q\" \\ \u00e9 \U0001F600"', 'a\tb\n"q" \\ é 😀'),
    ('"$${x} %%{y} $$$${z} 100% $5 $$"', "${x} %{y} $$${z} 100% $5 $$"),
    ('"$${open %%{open"', "${open %{open"),
    ('"${1 + 2 * 3}-${10 / 4}-${7 % 3}"', "7-2.5-1"),
    ('"${var.t}/${local.n}"', "text/3"),
    ('"${local.n}"', 3),
    ("var.l[1]", "y"),
    ('var.m["k"]', "v"),
    ("local.o.inner.x", "deep"),
    ('"${NOMAD_X}"', "${NOMAD_X}"),
    ('"a-${attr.cpu.arch}-${env["HOME"]}-${meta.x}"', 'a-${attr.cpu.arch}-${env["HOME"]}-${meta.x}'),
    ('local.n == 3 ? "three" : "other"', "three"),
    ("!local.b ? 1 : 2", 2),
    ("-5", -5),
    ("1.50", 1.5),
    ("1e3", 1000),
    ("(1 + 2) * 3", 9),
    ("1 < 2 && 2 > 1", True),
    ('"x${local.b}y"', "xtruey"),
    ('"${"nested ${upper("a")}"}"', "nested A"),
    ('jsonencode({"b" = [1, true, null, "<&>"], "a" = "é"})', '{"a":"é","b":[1,true,null,"\\u003c\\u0026\\u003e"]}'),
    ('join("-", var.l, ["z"])', "x-y-z"),
    ('format("%s-%03d-%v-%q-%%-%.2f", "a", 7, true, "q", 1.5)', 'a-007-true-"q"-%-1.50'),
    ('join(",", flatten([["a"], ["b", ["c"]]]))', "a,b,c"),
    ('merge({a = "x"}, {a = "y", b = "z"})["a"]', "y"),
    ('element(["a", "b"], 3)', "b"),
    ('lookup({a = "x"}, "b", "default")', "default"),
    ('substr("hello", 1, -1)', "ello"),
    ("floor(2.7)", 2),
    ('coalesce("", "b")', ""),
    ("<<EOT\nplain\n  two\nEOT", "plain\n  two\n"),
    ("<<-EOT\n      a\n        b\n\n      c\n      EOT", "a\n  b\n\nc\n"),
    (
        '<<EOT\n${var.t} $${x} ${NOMAD_Y} "q" \\n %%{z} {{ range }}\n\nEOT',
        'text ${x} ${NOMAD_Y} "q" \\n %{z} {{ range }}\n\n',
    ),
    ("<<EOT\nEOT", ""),
    ('<<EOT\n${join(",", var.l)} ${ local.n } ${local.b ? "y}" : "n"}\nEOT', "x,y 3 y}\n"),
]


def job(expression):
    return f"""{TOP}
job "a" {{
  datacenters = ["dc1"]
  group "g" {{
    task "t" {{
      driver = "raw_exec"
      config {{
        command = "x"
        v       = {expression}
      }}
    }}
  }}
}}
"""


def value(text, **variables):
    config = jobs_from_hcl(Source("x.nomad", text), variables)[0].look()["group"][0]["task"][0]["config"]
    return config["v"]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_values(expression, expected):
    found = value(job(expression))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.skipif(not shutil.which("nomad"), reason="there is no nomad on PATH")
def test_nomad_agrees(tmp_path):
    for expression, expected in VALUES:
        (tmp_path / "x.nomad").write_text(job(expression))
        found = subprocess.run(
            ["nomad", "job", "run", "-output", "x.nomad"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        config = json.loads(found.stdout)["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]
        assert config.get("v") == expected, expression


def test_lines_of_windows_mean_the_same():
    text = job("<<-EOT\n  a\n    b\n  EOT")
    assert value(text.replace("\n", "\r\n")).replace("\r", "") == value(text)


def test_variables_from_the_command_line():
    top = 'variable "n" {\n type = number\n}\nvariable "s" {\n type = string\n default = "a"\n}\n'
    text = top + job('"${var.n}-${var.s}"')
    assert value(text, n="5", s="1e3") == "5-1e3"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('job "a" {\n  group "b" {\n', "x.nomad:3 is not HCL: the file ends too early", None),
        ('job "a" {\n  count = \n}\n', "x.nomad:2 is not HCL: the line ends too early", None),
        ('job "a" {\n  count == 3\n}\n', "x.nomad:2 is not HCL: '==' is not expected here", None),
        ('job "a" {\n  a = "open\n}\n', "x.nomad:2 is not HCL", None),
        ('job "a" {\n  n = 1\n  n = 2\n}\n', "x.nomad:3 sets n a second time", None),
        ('jobs "a" {\n}\n', "x.nomad:1 has 'jobs' at the top, where Nomad knows job, variable and locals", None),
        (job('file("a.txt")'), "calls file(), which Yurt does not compute", "`nomad job run -output FILE`"),
        (job("uuidv4()"), "calls uuidv4(), which Yurt does not compute", "`nomad job run -output FILE`"),
        (job("[for x in var.l : x]"), "which Yurt does not compute", "`nomad job run -output FILE`"),
        (job("var.l[*]"), "which Yurt does not compute", "`nomad job run -output FILE`"),
        (job('"%{ if true }a%{ endif }"'), "which Yurt does not compute", "`nomad job run -output FILE`"),
        (job("<<EOT\na\n%{ if true }a%{ endif }\nEOT"), "which Yurt does not compute", "a literal %{ is written %%{"),
        (job("var.nothing"), "names var.nothing, and no variable block declares it", None),
        (job("local.nothing"), "names local.nothing, and no locals block declares it", None),
        (job("var.l[7]"), "holds 'var.l[7]', which has no value", None),
        (job("1 / 0"), "holds '1 / 0', which has no value", None),
        (job('"${var.l}"').replace('"${var.l}"', '"a${var.l}"'), "which has no value", None),
        (job(r'"\x"'), "has the unknown escape \\x", None),
        ('variable "v" {\n}\n' + job("var.v"), "needs var.v, which has no default", "give it: --var v=VALUE"),
        ("locals {\n  p = local.q\n  q = local.p\n}\n" + job("local.p"), "names local.p, which leans on itself", None),
        ("locals {\n  n = 1\n}\n" + job("1"), "declares local.n a second time", None),
        ('variable "t" {\n}\n' + job("1"), "declares var.t a second time", None),
        (job("1").replace('group "g"', 'dynamic "group"'), "has a dynamic block", "`nomad job run -output FILE`"),
    ],
)  # fmt: skip
def test_mistakes(text, message, hint):
    with pytest.raises(UsageError) as caught:
        jobs_from_hcl(Source("x.nomad", text), {})
    assert message in str(caught.value)
    assert str(caught.value).startswith("x.nomad:")
    assert "\n" not in str(caught.value)
    if hint:
        assert hint in caught.value.hint


def test_a_mistake_in_a_heredoc_has_its_line():
    text = 'job "a" {\n  meta {\n    x = <<EOT\nfine\n${file("a")}\nEOT\n  }\n}\n'
    with pytest.raises(UsageError, match=r"^x.nomad:5 calls file"):
        jobs_from_hcl(Source("x.nomad", text), {})
