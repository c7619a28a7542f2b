"""Fixtures of the Python client tests. The addresses of a running server come in PACELINE_HTTP and PACELINE_GRPC."""

import os

import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient


@pytest.fixture(scope="session")
def http_address():
    return os.environ["PACELINE_HTTP"]


@pytest.fixture()
def http(http_address):
    client = httpclient.InferenceServerClient(http_address, concurrency=16, network_timeout=30)
    yield client
    client.close()


@pytest.fixture()
def grpc():
    client = grpcclient.InferenceServerClient(os.environ["PACELINE_GRPC"])
    yield client
    client.close()


@pytest.fixture(params=["http", "grpc"])
def client(request):
    """Either client, with the tensor classes that belong to it."""
    instance = request.getfixturevalue(request.param)
    module = httpclient if request.param == "http" else grpcclient
    instance.module = module
    return instance
