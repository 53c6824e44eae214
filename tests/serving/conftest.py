"""One laboratory for all tests of a file, asked as a browser asks it."""

import pytest
from starlette.testclient import TestClient

from attlas.serving.app import make_app
from attlas.serving.settings import Settings

ADDRESS = "http://127.0.0.1:8765"
MODELS = ("sentiment", "recall", "dates", "shortcut_token")


@pytest.fixture(scope="package")
def client(tmp_path_factory):
    settings = Settings(tmp_path_factory.mktemp("kept"), MODELS)
    with TestClient(make_app(settings), base_url=ADDRESS) as asking:
        yield asking


@pytest.fixture
def post(client):
    def asked(name, **body):
        answer = client.post(f"/api/{name}", json=body)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    return asked
