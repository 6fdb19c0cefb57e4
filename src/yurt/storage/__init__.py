"""Where models go: published whole, verified, and read back.

::

    from yurt.storage.publish import publish, Published
    from yurt.storage.read import verify, resolve, fetch, list_versions
    from yurt.storage.checks import check_output
    from yurt.storage.errors import StorageFailed, Reason, REASONS
    from yurt.storage.manifest import Manifest, FileEntry

This package imports nothing but the standard library and yurt.errors, since it travels with the agent; obstore
is imported by bucket.py alone, and only for s3, gs and az. It re-exports nothing: ``python -m
yurt.storage.publish`` would load that file twice.
"""
