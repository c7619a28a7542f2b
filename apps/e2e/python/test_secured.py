"""tritonclient with a key, over mutual TLS."""

import os

import gevent.ssl
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

FOLDER = os.environ["PACELINE_TLS_FOLDER"]
ADDRESS = {"http": os.environ["PACELINE_HTTP"], "grpc": os.environ["PACELINE_GRPC"]}


def key():
    """A dictionary of its own for each call: the HTTP client adds its headers to the one it is given."""
    return {"authorization": f"Bearer {os.environ['PACELINE_KEY']}"}


def pem(name):
    return os.path.join(FOLDER, name)


def client_of(protocol, certificate="client"):
    url = ADDRESS[protocol].replace("127.0.0.1", "localhost")
    if protocol == "grpc":
        return grpcclient.InferenceServerClient(
            url, ssl=True, root_certificates=pem("authority.pem"),
            private_key=pem(f"{certificate}.key"), certificate_chain=pem(f"{certificate}.pem"),
        )

    def context():
        made = gevent.ssl.create_default_context(cafile=pem("authority.pem"))
        made.load_cert_chain(pem(f"{certificate}.pem"), pem(f"{certificate}.key"))
        return made

    return httpclient.InferenceServerClient(url, ssl=True, ssl_context_factory=context)


def infer(protocol, model, rows=1):
    module = grpcclient if protocol == "grpc" else httpclient
    data = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
    given = module.InferInput("INPUT0", list(data.shape), "FP32")
    given.set_data_from_numpy(data)
    answer = client_of(protocol).infer(model, [given], headers=key())
    assert np.array_equal(answer.as_numpy("OUTPUT0"), data)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_key_opens_its_models(protocol):
    for rows in [1, 2, 8]:
        infer(protocol, "identity_fp32", rows=rows)
    with pytest.raises(InferenceServerException, match="does not open model 'batcher'"):
        infer(protocol, "batcher")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_without_a_key_only_liveness(protocol):
    client = client_of(protocol)
    assert client.is_server_live()
    with pytest.raises(InferenceServerException, match="needs an API key"):
        client.get_model_metadata("identity_fp32")
    assert client.get_model_metadata("identity_fp32", headers=key())
    with pytest.raises(InferenceServerException, match="lacks the scope 'model-config'"):
        client.get_model_config("identity_fp32", headers=key())


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_certificate_of_a_stranger_is_refused(protocol):
    with pytest.raises(Exception):
        assert client_of(protocol, "stranger").is_server_live()
