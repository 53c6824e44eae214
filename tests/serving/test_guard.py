"""Who may ask, and what is refused before any model is asked."""

import json

import pytest
from starlette.testclient import TestClient

from attlas.serving.app import make_app
from attlas.serving.guard import COOKIE
from attlas.serving.settings import Limits, Settings

JSON = {"Content-Type": "application/json"}
BODY = json.dumps({"model": "sentiment", "input": {"text": "so good"}})


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server for others, with a token."""
    limits = Limits(bytes=5000)
    settings = Settings(
        tmp_path_factory.mktemp("kept"),
        ("sentiment",),
        "0.0.0.0",
        80,
        "sesame",
        ("lab.test",),
        limits,
    )
    with TestClient(make_app(settings), base_url="http://10.1.2.3") as asking:
        yield asking


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "evil.test:8765", "", "[::1"])
def test_a_foreign_host_is_refused(client, host):
    answer = client.get("/health", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (421, "host")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8765", "[::1]:8765", "LOCALHOST"])
def test_this_machine_is_not_foreign(client, host):
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_a_local_server_is_not_reached_by_other_addresses(client):
    assert client.get("/health", headers={"Host": "10.1.2.3"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_what_a_foreign_page_asks_is_refused(client, headers):
    answer = client.post("/api/explain", content=BODY, headers={**JSON, **headers})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "cross-site")
    assert client.get("/api/jobs", headers=headers).status_code == 403


def test_a_link_to_the_page_may_be_followed(client):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    own = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/jobs", headers=own).status_code == 200


def test_a_server_for_others_wants_its_token(guarded):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic sesame"}):
        for path in ("/", "/api/models", "/openapi.json", "/page/views.js", "/reports/x", "/no"):
            answer = guarded.get(path, headers=headers)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (401, "token"), path
    assert guarded.get("/health").status_code == 200
    right = {"Authorization": "Bearer sesame"}
    assert guarded.get("/", headers=right).status_code == 200
    assert guarded.get("/", headers={**right, "Host": "lab.test"}).status_code == 200
    assert guarded.get("/", headers={**right, "Host": "other.test"}).status_code == 421


def test_a_browser_gets_its_token_from_the_address_once(guarded):
    refused = guarded.get("/?token=wrong", follow_redirects=False)
    assert refused.status_code == 401 and COOKIE not in refused.cookies
    answer = guarded.get("/?token=sesame", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    guarded.cookies.set(COOKIE, "sesame")
    assert guarded.get("/api/jobs").status_code == 200
    guarded.cookies.clear()
    assert guarded.get("/api/jobs?token=sesame").status_code == 401, "only the page takes it so"


def test_every_answer_has_a_strict_policy(client):
    for path in ("/", "/health", "/no", "/page/views.js", "/api/jobs"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"", JSON, 400),
        (b'"\xff\xfe"', JSON, 400),
        (BODY.encode("utf-16"), JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b'{"a":' * 5000, JSON, 400),
        (b'{"model": "\\ud800", "input": {"text": "x"}}', JSON, 400),
        (b"[]", JSON, 422),
        (b"null", JSON, 422),
        (b"1e999", JSON, 422),
        (b'{"model": NaN}', JSON, 422),
        (BODY.encode(), {}, 415),
        (BODY.encode(), {"Content-Type": "text/plain"}, 415),
        (BODY.encode(), {"Content-Type": "multipart/form-data"}, 415),
        (b" " * 3_000_000, JSON, 413),
        (b" ", {**JSON, "Content-Length": "3000000"}, 413),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(client, content, headers, status):
    answer = client.post("/api/explain", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["says"]


def test_a_body_without_a_length_is_counted_as_it_comes(guarded):
    headers = {**JSON, "Authorization": "Bearer sesame"}
    sent = guarded.post("/api/explain", content=(b" " * 1000 for _ in range(9)), headers=headers)
    assert sent.status_code == 413


@pytest.mark.parametrize(
    "path", ["/page/../shelf.py", "/page/%2e%2e%2fshelf.py", "/page/", "/reports/%2e%2e"]
)
def test_no_file_but_those_of_the_page_is_served(client, path):
    assert client.get(path).status_code == 404


def test_methods_that_an_address_does_not_take_are_refused(client):
    assert client.get("/api/explain").status_code == 405
    assert client.put("/api/jobs").status_code == 405
    assert client.request("TRACE", "/").status_code == 405


def test_a_full_queue_refuses_at_once(tmp_path):
    settings = Settings(tmp_path, ("sentiment",), limits=Limits(workers=1, queue=0))
    app = make_app(settings)
    with TestClient(app, base_url="http://127.0.0.1:8765") as asking:
        app.laboratory.workers._waiting = 1
        answer = asking.get("/api/models")
    assert answer.status_code == 429 and answer.headers["retry-after"]


def test_work_that_takes_too_long_is_answered_in_time(tmp_path):
    from threading import Event
    from time import monotonic, sleep

    settings = Settings(tmp_path, ("sentiment",), limits=Limits(seconds=0.05))
    app, over = make_app(settings), Event()
    app.laboratory.shelf.described = lambda limits: over.wait(60)
    with TestClient(app, base_url="http://127.0.0.1:8765") as asking:
        answer = asking.get("/api/models")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "time")
        assert app.laboratory.workers._waiting == 1, "it keeps its place until it has ended"
        over.set()
        end = monotonic() + 30
        while app.laboratory.workers._waiting and monotonic() < end:
            assert asking.get("/health").status_code == 200
            sleep(0.01)
        assert app.laboratory.workers._waiting == 0


def test_what_nobody_foresaw_is_an_error_without_details(tmp_path, capsys):
    app = make_app(Settings(tmp_path, ("sentiment",)))
    app.laboratory.shelf.described = lambda limits: 1 / 0
    with TestClient(app, base_url="http://127.0.0.1:8765") as asking:
        answer = asking.get("/api/models")
    assert answer.status_code == 500 and "ZeroDivision" not in answer.text
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any("ZeroDivisionError" in line.get("problem", "") for line in lines)


def test_the_log_has_no_text_of_a_person(client, capsys):
    client.post("/api/explain", json={"model": "sentiment", "input": {"text": "my secret"}})
    logged = capsys.readouterr().err
    assert "secret" not in logged
    line = json.loads(logged.splitlines()[-1])
    assert (line["path"], line["status"]) == ("/api/explain", 200) and line["ms"] > 0
