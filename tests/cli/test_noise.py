"""What TensorFlow says at every start is not shown; everything else is."""

from yurt.cli.noise import without_noise

START = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "I0000 00:00:1796099962.111068   16098 port.cc:153] oneDNN custom operations are on. You may see slightly ...\n"
)


def test_the_noise_goes_and_the_rest_stays_to_the_letter():
    assert without_noise(f"a\n{START}\n b: WARNING\nW0000 cuda broke\n") == "a\n\n b: WARNING\nW0000 cuda broke\n"


def test_text_without_noise_is_the_same_object():
    text = "Epoch 1/3\n"
    assert without_noise(text) is text
