"""The API server, as far as binding pods and seeing which of them are there takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from jostle.errors import NotPermitted, UsageError
from jostle.service.kubernetes._pods import PREFIX

IN_CLUSTER = "in-cluster"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 5.0


class ApiServer:
    """address: http(s)://…, or `in-cluster`: with the account of the pod that this runs in.

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

    async def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {}
        if self._in_cluster:  # the token is renewed by the cluster, so it is read anew
            headers["Authorization"] = f"Bearer {(_ACCOUNT / 'token').read_text().strip()}"
        try:
            return await self._client.request(method, path, headers=headers, **options)
        except httpx.HTTPError as error:
            raise NotPermitted(f"the API server does not answer: {type(error).__name__}") from error

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Raises NotPermitted where it refuses."""
        document = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        response = await self._call("POST", path, json=document)
        if response.status_code >= 300:
            raise NotPermitted(f"the API server refuses the binding: {response.text[:200]}")

    async def pod(self, namespace: str, name: str) -> Any:
        """As it is there. Raises NotPermitted."""
        response = await self._call("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        if response.status_code >= 300:
            raise NotPermitted(f"the API server does not show the pod: {response.text[:200]}")
        return response.json()

    async def pods(self) -> list[Any]:
        """All that carry the label of a workload. Raises NotPermitted."""
        response = await self._call(
            "GET", "/api/v1/pods", params={"labelSelector": f"{PREFIX}workload"}
        )
        if response.status_code >= 300:
            raise NotPermitted(f"the API server does not list pods: {response.text[:200]}")
        return list(response.json().get("items") or [])

    async def close(self) -> None:
        await self._client.aclose()
