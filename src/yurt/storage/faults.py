"""What an object store's error means, as a sentence for the person: one table for all clouds.

obstore (0.12) gives a kind of exception and a text such as ``Error performing PUT http://... in 2 ms - Server
returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>...``, with a debug dump after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from yurt.storage.errors import Reason, StorageFailed

_CODE = re.compile(r"<Code>(\w+)</Code>|\"code\":\s*\"?(\w+)")
_STATUS = re.compile(r"status code: (\d{3}[^:<\n]*)")
_SERVER_SAYS = re.compile(r"<Message>([^<]*)</Message>")
_CAUSES = (
    ("Connection refused", "connection refused"),
    ("failed to lookup address", "the host's name is unknown"),
    ("dns error", "the host's name is unknown"),
    ("InvalidCertificate", "its TLS certificate is not trusted (AWS_CA_BUNDLE or SSL_CERT_FILE names your own)"),
    ("certificate", "its TLS certificate is not trusted"),
    ("Timeout", "no answer in time"),
    ("operation timed out", "no answer in time"),
    ("Connection reset", "the connection was cut"),
    ("Network is unreachable", "the network is unreachable"),
)
_METADATA = ("169.254.169.254", "/latest/api/token", "computeMetadata", "metadata/identity", "/latest/meta-data")

_CREDENTIAL_HINTS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (needs boto3), or give the machine a role",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, or give the machine a service account",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or give the machine an identity",
}
_CODES: dict[str, Reason] = {
    "NoSuchBucket": "not-found",
    "ContainerNotFound": "not-found",
    "AccessDenied": "denied",
    "AllAccessDisabled": "denied",
    "ExpiredToken": "denied",
    "InvalidToken": "denied",
    "TokenRefreshRequired": "denied",
    "InvalidAccessKeyId": "denied",
    "SignatureDoesNotMatch": "denied",
    "RequestTimeTooSkewed": "denied",
    "QuotaExceeded": "no-space",
    "XMinioStorageFull": "no-space",
    "InsufficientStorage": "no-space",
    "BadDigest": "corrupt",
    "XAmzContentSHA256Mismatch": "corrupt",
    "XAmzContentChecksumMismatch": "corrupt",
    "Md5Mismatch": "corrupt",
    "SlowDown": "unavailable",
    "ServiceUnavailable": "unavailable",
    "InternalError": "unavailable",
    "RequestTimeout": "unavailable",
}
_KINDS: dict[str, Reason] = {
    "PermissionDeniedError": "denied",
    "UnauthenticatedError": "denied",
}


def explain(
    error: Exception, *, bucket: str, key: str, endpoint: str, elapsed_s: float, environ: Mapping[str, str]
) -> StorageFailed | None:
    """`error` as a StorageFailed; None when it says that the object (not the bucket) is not there.

    `bucket` is ``scheme://name``, `endpoint` the configured one or empty, `elapsed_s` the time spent.
    """
    text = str(error)
    summary = text.partition("\n\nDebug source:")[0]
    scheme = bucket.partition(":")[0]
    at = f" (at {endpoint})" if endpoint else ""
    code = _code(summary)
    status = _STATUS.search(summary)
    said = _SERVER_SAYS.search(summary)
    where = f"{bucket}/{key}" if key else bucket

    if "No CA certificates" in text:
        return StorageFailed(
            f"{bucket} cannot be reached: this machine has no certificates of authorities",
            reason="other",
            hint="install ca-certificates, or set SSL_CERT_FILE to a file of them",
        )
    if any(mark in text for mark in _METADATA):
        return StorageFailed(f"no credentials were found for {bucket}", reason="denied", hint=_CREDENTIAL_HINTS[scheme])
    if code in ("NoSuchBucket", "ContainerNotFound") or re.search(r"(bucket|container) does not exist", summary):
        noun = "container" if scheme == "az" else "bucket"
        return StorageFailed(
            f"the {noun} {bucket} does not exist{at}",
            reason="not-found",
            hint=f"create it, or correct the output's {noun} name, region or endpoint",
        )
    if isinstance(error, FileNotFoundError):
        return None
    if "redirect without LOCATION" in text or code in ("PermanentRedirect", "AuthorizationHeaderMalformed"):
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1, the default"
        return StorageFailed(
            f"the bucket {bucket} is not in the region {region}", reason="other", hint="set AWS_REGION to its region"
        )
    reason = _CODES.get(code) or _KINDS.get(type(error).__name__)
    if reason == "denied":
        return StorageFailed(
            f"access to {where} was denied{at}: {code or (status[1].strip() if status else 'no valid credentials')}",
            reason="denied",
            hint=f"allow these credentials to read and write there; {_CREDENTIAL_HINTS[scheme]}",
        )
    if reason == "no-space":
        return StorageFailed(f"no room left in {bucket}{at}: {code}", reason=reason, hint="make room, publish again")
    if reason == "corrupt":
        return StorageFailed(
            f"{bucket} refused {key}: what arrived is not what was sent ({code})",
            reason=reason,
            hint="publish again; if it happens again, suspect a proxy on the way",
        )
    if reason == "unavailable" or re.search(r"status code: (5\d\d|429|408)", summary) or "HTTP error" in summary:
        return _unavailable(text, bucket, endpoint, elapsed_s, code or (status[1].strip() if status else ""))
    detail = said[1] if said else _first_line(summary)
    return StorageFailed(
        f"{bucket} answered{at}: {detail}" if status else f"{bucket} cannot be used: {detail}",
        reason="other",
        hint=f"check the settings of {scheme}: {_CREDENTIAL_HINTS[scheme]}",
    )


def _unavailable(text: str, bucket: str, endpoint: str, elapsed_s: float, code: str) -> StorageFailed:
    if "BadScheme" in text or "builder error" in text:
        return StorageFailed(
            f"the endpoint {endpoint or 'of ' + bucket} is no usable URL",
            reason="other",
            hint="write the endpoint as https://HOST or http://HOST:PORT",
        )
    cause = code or next((words for mark, words in _CAUSES if mark in text), "the request failed")
    return StorageFailed(
        f"{bucket}{f' at {endpoint}' if endpoint else ''} was not usable for {elapsed_s:.0f} s: {cause}",
        reason="unavailable",
        hint="check the endpoint and the network, then publish again; the model is kept",
    )


def _code(summary: str) -> str:
    found = _CODE.search(summary)
    return (found[1] or found[2] or "") if found else ""


def _first_line(summary: str) -> str:
    line = " ".join(summary.split())
    return line if len(line) <= 300 else line[:297] + "..."
