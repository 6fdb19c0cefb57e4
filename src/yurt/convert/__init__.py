"""Job files of other systems, in and out.

One folder or module a format, found by content (`formats`); each makes a `Converted`: the job, and one note for
everything that it could not carry.
"""

from yurt.convert.converted import Converted, Note, Written, job_file
from yurt.convert.formats import TFJOB, format_of, is_tfjob, is_yurt, read_jobs, write_job
from yurt.convert.source import Source, read_source

__all__ = [
    "TFJOB",
    "Converted",
    "Note",
    "Source",
    "Written",
    "format_of",
    "is_tfjob",
    "is_yurt",
    "job_file",
    "read_jobs",
    "read_source",
    "write_job",
]
