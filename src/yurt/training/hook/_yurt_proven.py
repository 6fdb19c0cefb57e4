"""The Keras versions that the mends were proven with, each by comparing two workers with one process.

A mend reaches into Keras's own functions, so it is applied to versions in this table and to no other. To add one:
install it, run `tests/training`, write the line.
"""

#: Version of Keras: what it was proven with.
PROVEN = {
    "3.10": "3.10.0, TensorFlow 2.21: the scripts of tests/training by hand",
    "3.12": "3.12.0, TensorFlow 2.21: the scripts of tests/training by hand",
    "3.13": "3.13.0, TensorFlow 2.21: the scripts of tests/training by hand",
    "3.15": "3.15.1, TensorFlow 2.21: tests/training, every time",
}
