import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.job import Job
from yurt.job.command import finished, split, write_command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py --epochs 3", "python|train.py|--epochs|3"),
        ("train.py", "python|train.py"),
        ("./src/train.py -v", "python|./src/train.py|-v"),
        ("-m trainer.task --x", "python|-m|trainer.task|--x"),
        ("python3.11 -u train.py", "python3.11|-u|train.py"),
        ("echo 'a b'  \"c d\" e\\ f", "echo|a b|c d|e f"),
        ("echo '&&' \";\" \\> '|'", "echo|&&|;|>|'|'".replace("'|'", "PIPE")),
        ("find . -exec rm {} \\;", "find|.|-exec|rm|{}|;"),
        ("echo $HOME ~ *.csv `x` #no", "echo|$HOME|~|*.csv|`x`|#no"),
        ("a --pattern=x&y --more=a>b", "a|--pattern=x&y|--more=a>b"),
        ("python t.py --name=Zoë\u00a0x", "python|t.py|--name=Zoë\u00a0x"),
        ("a \\\n  b", "a|b"),
        ("a 'b\nc'", "a|b\nc"),
        ('a "b\\\nc"', "a|bc"),
        ("\n  a b\n", "a|b"),
    ],
)
def test_a_line_is_split_as_a_shell_does(line, words):
    expected = tuple("|" if word == "PIPE" else word for word in words.split("|"))
    assert Job(name="a", command=line).command == expected


@pytest.mark.parametrize(
    "line",
    [
        "a && b",
        "a || b",
        "a | b",
        "a ; b",
        "a; b",
        "a > f",
        "a >> f",
        "a < f",
        "a &",
        "a 2>&1",
        "a 2>f",
        "a >f",
        "a &> f",
        "a <<< f",
        "a |tee f",
        "a\nb",
        "a 'b'\nc",
        "X=1 a",
        "a 'b",
        'a "b',
        "a \\",
        "",
        " ",
        "''",
        "''\n",
    ],
)
def test_what_needs_a_shell_or_is_no_command(line):
    with pytest.raises(ValueError):
        finished(split(line))


def test_a_list_stays_letter_for_letter():
    words = ["sh", "-c", "python a.py && python b.py > log", "", "  "]
    assert Job(name="a", command=words).command == tuple(words)


words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), min_size=1, max_size=5)


@given(words)
def test_a_command_comes_back_from_its_written_form(words):
    if not words[0].strip():
        words[0] = "x"
    job = Job(name="a", command=words)
    assert Job(name="a", command=write_command(job.command)) == job


@given(st.text(alphabet="ab &|;<>'\"\\\n=.1$", max_size=15))
def test_any_line_is_words_or_a_mistake(line):
    try:
        words = split(line)
    except ValueError:
        return
    assert words
    assert all(isinstance(word, str) for word in words)
