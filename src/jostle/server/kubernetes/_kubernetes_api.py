"""The API server, as far as seeing which pods and nodes are there takes it: nothing is changed through it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from jostle.errors import NotPermitted, UsageError

IN_CLUSTER = "in-cluster"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 5.0


class ApiServer:
    """Client of a Kubernetes API server. address: http(s)://…, or `in-cluster`: with the account of the pod
    that this runs in.

    Raises UsageError outside a pod.
    """

    def __init__(self, address: str) -> None:
        verify: Any = True
        if address == IN_CLUSTER:
            if not (_ACCOUNT / "token").exists():
                raise UsageError("there is no service account here", where=str(_ACCOUNT))
            import ssl

            verify = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
            address = "https://kubernetes.default.svc"
        self._in_cluster = address.startswith("https://kubernetes.default")
        self._client = httpx.AsyncClient(base_url=address, timeout=_SECONDS, verify=verify)

    async def list(self, kind: str, **query: str) -> list[Any]:
        """Read all `pods` or `nodes`, as the API server has them. Raises NotPermitted."""
        headers = {}
        if self._in_cluster:  # the token is renewed by the cluster, so it is read anew
            headers["Authorization"] = f"Bearer {(_ACCOUNT / 'token').read_text().strip()}"
        try:
            response = await self._client.get(f"/api/v1/{kind}", headers=headers, params=query)
        except httpx.HTTPError as error:
            raise self._error(f"the API server does not answer: {type(error).__name__}") from error
        if response.status_code >= 300:
            raise self._error(f"the API server does not list {kind}: {response.text[:200]}")
        try:
            items = response.json()["items"]
            return list(items or [])
        except (KeyError, RecursionError, TypeError, ValueError):
            raise self._error(f"the API server answers with no list of {kind}") from None

    def _error(self, what: str) -> NotPermitted:
        where = str(self._client.base_url)
        return NotPermitted(
            what, where=where, fix="Check the address, and what the account may do."
        )

    async def close(self) -> None:
        await self._client.aclose()
