"""The run's store as an agent reaches it."""

from __future__ import annotations

from yurt.contract.config import AgentConfig
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.kv.tls import TlsParams


def run_store(config: AgentConfig) -> RunStore:
    """Over TLS where its address says so. Raises UsageError for certificates that are not where the job says."""
    tls_params = TlsParams(**config.store_tls)
    return RunStore(Store(config.store, config.token, tls_params=tls_params), config.run)
