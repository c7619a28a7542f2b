"""Explicit model control through tritonclient. The server was started with --model-control-mode=explicit."""

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from test_clients import make_input


def infer(client):
    array = np.arange(4, dtype=np.float32).reshape(1, 4)
    return client.infer("identity_fp32", [make_input(client.module, "INPUT0", array)]).as_numpy("OUTPUT0")


def test_load_infer_unload(client):
    client.unload_model("identity_fp32")
    assert not client.is_model_ready("identity_fp32")
    with pytest.raises(InferenceServerException):
        infer(client)
    client.load_model("identity_fp32")
    assert client.is_model_ready("identity_fp32")
    assert infer(client).tolist() == [[0, 1, 2, 3]]
    client.load_model("identity_fp32")  # loading what is loaded changes nothing
    client.unload_model("identity_fp32")
    assert not client.is_model_ready("identity_fp32")


def test_a_model_that_cannot_load_says_why_every_time(client):
    for _ in range(2):
        with pytest.raises(InferenceServerException, match="config.pbtxt"):
            client.load_model("broken_config")


def test_an_unknown_model_cannot_be_loaded(client):
    with pytest.raises(InferenceServerException, match="failed to load 'nope'"):
        client.load_model("nope")
