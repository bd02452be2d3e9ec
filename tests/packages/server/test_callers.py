"""Who may ask: by roles of keys, by rate, by certificates of clients."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.errors import NotPermitted, UsageError
from jostle.operations import served_verbs
from jostle.server import ServeSettings
from jostle.server.http._callers import Callers
from tests.packages.server.conftest import Start
from tests.packages.server.process_samples import KEYS, serving


def test_roles(start: Start, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEYS)
    service = start(keys=tmp_path / "keys")

    def status(key: str, method: str, path: str, body: Any = None) -> int:
        head = {"Authorization": f"Bearer {key}"}
        return service.http.request(method, path, json=body, headers=head).status_code

    asked = ("POST", "/v1/rank", {"items": [{"workload": "w00"}]})
    metadata = {"labels": {"jostle/workload": "w00"}, "uid": "a" * 300}
    pod = {"Pod": {"metadata": metadata}, "NodeNames": ["east"]}
    for hold in ("prioritize", "filter"):
        assert status("writer-key", "POST", f"/v1/kubernetes/{hold}", pod) == 422
    # The description is long: strangers do not make the service send it.
    assert service.http.get("/openapi.json").status_code == 401
    # Keys are changed while it serves; what cannot be read changes none.
    (tmp_path / "keys").write_text("see read another-key\n")
    assert status("reader-key", *asked) == 401
    assert status("another-key", *asked) == 200
    (tmp_path / "keys").write_text("see everything another-key\n")
    assert status("another-key", *asked) == 200
    # But one without keys, or none at all, revokes them all.
    for revoked in (lambda path: path.write_text("\n# none\n"), Path.unlink):
        (tmp_path / "keys").write_text("see read another-key\n")
        assert status("another-key", *asked) == 200
        revoked(tmp_path / "keys")
        assert status("another-key", *asked) == 401


def test_every_route_asks_for_its_role(start: Start, tmp_path: Path) -> None:
    """A key that may read changes nothing, whatever it asks; one that may write does all but administer."""
    (tmp_path / "keys").write_text(KEYS)
    service = start(keys=tmp_path / "keys")
    store = service.app.state.service.store

    def statuses(key: str) -> dict[tuple[str, str], int]:
        found = {}
        for path, methods in paths.items():
            for method, about in methods.items():
                content = about.get("requestBody", {}).get("content", {}).get("application/json")
                body = content and content.get("example", pod)
                head = {"Authorization": f"Bearer {key}"}
                asked = service.http.request(
                    method, path.replace("{id}", "a"), json=body, headers=head
                )
                found[method, path] = asked.status_code
        return found

    def changed() -> tuple[int, int]:
        return len(store.placements_since(0)), store.last_number()

    head = {"Authorization": "Bearer admin-key"}
    paths = service.http.get("/openapi.json", headers=head).json()["paths"]
    metadata = {"name": "a", "namespace": "b", "uid": "c", "labels": {"jostle/workload": "w00"}}
    pod = {"Pod": {"metadata": metadata}, "NodeNames": ["east"]}
    kinds = [one for about in ("model", "placement", "forecasts") for one in served_verbs(about)]
    verbs = {f"/v1/{name}" for one in kinds for name in (one.name, *one.also)}
    anybody, reader, writer, admin = map(statuses, ("x", *KEYS.split()[2::3]))
    assert {path for (_, path), status in anybody.items() if status != 401} == {
        "/healthz",
        "/readyz",
    }
    for (method, path), status in reader.items():
        assert (status == 403) == (method != "get" and path not in verbs), (method, path)
    assert [one for one, status in writer.items() if status == 403] == [("post", "/v1/models/back")]
    assert 403 not in admin.values()
    before = changed()
    assert before != (0, 0)
    assert statuses("reader-key") == reader
    assert changed() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no API key"),
        ("# none\n", "no API key"),
        ("see read k\ndo", "line 2"),  # cut off: a name is no key that may do everything
        ("a b\n", "line 1"),
        ("a owner c\n", "line 1"),
        ("ä read c\n", "ascii"),
        ("a read k\nb administer k\n", "another role"),
    ],
)
def test_files_without_keys_are_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(UsageError, match=why):
        Callers(tmp_path / "keys", 1.0, lambda: 0.0)


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\n # mine\n"])
def test_keys_as_editors_write_them(tmp_path: Path, begin: str, end: str) -> None:
    (tmp_path / "keys").write_bytes(f"{begin}see\tread k{end or chr(10)}see read l{end}".encode())
    callers = Callers(tmp_path / "keys", 1.0, lambda: 0.0)
    found = [callers.of(one, "") for one in ("k", "l", "see", "")]
    assert [one and (one.name, one.role) for one in found] == [("see", "read")] * 2 + [None] * 2


def test_the_rate_is_that_of_each_caller() -> None:
    now = [0.0]
    callers = Callers(None, 4.0, lambda: now[0])
    assert [callers.waits("a") for _ in range(6)] == [0, 0, 0, 0, 0.25, 0.25]
    assert callers.waits("b") == 0
    now[0] += 0.5
    assert [callers.waits("a") for _ in range(3)] == [0, 0, 0.25]
    now[0] += 1000  # no more than a second's requests at once, and one where that is less
    assert [callers.waits("a") for _ in range(5)] == [0, 0, 0, 0, 0.25]
    slow = Callers(None, 0.5, lambda: now[0])
    assert [slow.waits("a") for _ in range(2)] == [0, 2]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "cluster.example"])
def test_nothing_is_open_to_others_without_a_key_and_a_certificate(
    tmp_path: Path, host: str
) -> None:
    made: Any = ServeSettings
    for more in ({}, {"keys": tmp_path}, {"tls_cert": tmp_path}):
        with pytest.raises(UsageError, match="no certificate or no key"):
            made(model=tmp_path, host=host, **more)
    asked = made(model=tmp_path, host=host, keys=tmp_path, tls_cert=tmp_path)
    assert not asked.hosts


def certificate(folder: Path, name: str, ca: str | None = None) -> None:
    """folder/name.pem, .key: signed by itself, or by that."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl is installed")
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
    signed = (
        []
        if ca is None
        else ["-CA", str(folder / f"{ca}.pem"), "-CAkey", str(folder / f"{ca}.key")]
    )
    # What strict checks (Python 3.13's default) want: who signs says that it may, and who is signed that not.
    uses = "keyCertSign,digitalSignature" if ca is None else "digitalSignature"
    signs = [
        *("-addext", f"keyUsage=critical,{uses}"),
        *("-addext", f"basicConstraints=critical,CA:{str(ca is None).upper()}"),
    ]
    kind = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        ["openssl", "req", *kind, *subject, *signs, *files, *signed],
        check=True,
        capture_output=True,
    )


def test_clients_with_a_certificate(model_folders: tuple[Path, Path], tmp_path: Path) -> None:
    for name, ca in (
        ("jostle", None),
        ("ca", None),
        ("kube-scheduler", "ca"),
        ("stranger", "ca"),
        ("own", None),
    ):
        certificate(tmp_path, name, ca)
    (tmp_path / "keys").write_text("kube-scheduler write certificate\nsee read reader-key\n")
    given = {
        "tls-cert": "jostle.pem",
        "tls-key": "jostle.key",
        "client-ca": "ca.pem",
        "keys": "keys",
    }
    more = [word for name, file in given.items() for word in (f"--{name}", str(tmp_path / file))]

    def client(name: str | None, key: str | None = None) -> jostle.Client:
        tls = ssl.create_default_context(cafile=str(tmp_path / "jostle.pem"))
        if name is not None:
            tls.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        return jostle.Client(where, tls=tls, api_key=key)

    with serving(model_folders[0], tmp_path / "s.sqlite", *more, "--most-connections", "9") as (
        where,
        _,
    ):
        assert where.startswith("https://127.0.0.1:")
        with client("kube-scheduler") as known:
            assert known.put_placement("a", "w00", "p0") > 0
        with client(None, "reader-key") as reader:
            assert len(reader.placements()) == 1
            with pytest.raises(NotPermitted, match="may read, not write"):
                reader.delete_placement("a")
        # The word is no key, and another's certificate no name.
        for stranger in (
            client(None),
            client(None, "certificate"),
            client("stranger"),
            client("own"),
        ):
            with stranger, pytest.raises(NotPermitted):
                stranger.placements()
        # Those who never begin with TLS keep nobody out.
        silent = [
            socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2])))
            for _ in range(60)
        ]
        with client("kube-scheduler") as known:
            assert known.delete_placement("a")
        for made in silent:
            made.close()
