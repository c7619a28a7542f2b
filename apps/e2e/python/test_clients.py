"""tritonclient over HTTP and gRPC, unchanged, against a running server."""

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

DTYPES = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "fp16": np.float16,
    "fp32": np.float32,
    "fp64": np.float64,
}


def make_input(module, name, array):
    tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array)
    return tensor


def values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def test_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("add_sub")
    assert client.is_model_ready("add_sub", "1")
    assert not client.is_model_ready("no_such_model")
    metadata = client.get_model_metadata("add_sub")
    config = client.get_model_config("add_sub")
    if client.module is grpcclient:
        metadata = {"name": metadata.name, "versions": list(metadata.versions), "inputs": [i.name for i in metadata.inputs], "shape": list(metadata.inputs[0].shape)}
        config = {"name": config.config.name, "max_batch_size": config.config.max_batch_size}
    else:
        metadata = {**metadata, "shape": metadata["inputs"][0]["shape"], "inputs": [i["name"] for i in metadata["inputs"]]}
    assert metadata["name"] == "add_sub" and metadata["versions"] == ["1"]
    assert metadata["inputs"] == ["INPUT0", "INPUT1"]
    assert metadata["shape"] == [-1, 16]
    assert config["name"] == "add_sub" and config["max_batch_size"] == 8


@pytest.mark.parametrize("name", DTYPES)
def test_every_datatype_comes_back_bit_for_bit(client, name):
    array = values(DTYPES[name], (3, 4), seed=7)
    result = client.infer(f"identity_{name}", [make_input(client.module, "INPUT0", array)])
    back = result.as_numpy("OUTPUT0")
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


def test_bytes_elements_keep_every_character(client):
    array = np.array([["", "a", "üß\u00a0\n", "日本語" * 50]], dtype=np.object_)
    tensor = client.module.InferInput("INPUT0", [1, 4], "BYTES")
    tensor.set_data_from_numpy(array)
    back = client.infer("identity_bytes", [tensor]).as_numpy("OUTPUT0")
    assert [b.decode() for b in back.reshape(-1)] == list(array.reshape(-1))


def test_strings_that_the_runtime_cannot_hold_are_refused_by_name(client):
    """ONNX Runtime's strings end at a zero byte in this binding: better an error than half an answer."""
    tensor = client.module.InferInput("INPUT0", [1, 4], "BYTES")
    tensor.set_data_from_numpy(np.array([["a", "b\u0000c", "d", "e"]], dtype=np.object_))
    with pytest.raises(InferenceServerException, match="element 1 of input 'INPUT0' contains a zero byte"):
        client.infer("identity_bytes", [tensor])


def test_http_json_tensors_both_ways(http):
    array = values(np.float32, (2, 4), seed=3)
    tensor = httpclient.InferInput("INPUT0", [2, 4], "FP32")
    tensor.set_data_from_numpy(array, binary_data=False)
    result = http.infer("identity_fp32", [tensor], outputs=[httpclient.InferRequestedOutput("OUTPUT0", binary_data=False)])
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_http_compression_both_ways(http, algorithm):
    array = values(np.float32, (8, 4), seed=5)
    result = http.infer(
        "identity_fp32",
        [make_input(httpclient, "INPUT0", array)],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


def test_grpc_compression(grpc):
    array = values(np.float32, (8, 4), seed=5)
    result = grpc.infer("identity_fp32", [make_input(grpcclient, "INPUT0", array)], compression_algorithm="gzip")
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)


def test_ids_and_requested_outputs(client):
    a, b = values(np.int32, (1, 16), 1) // 2, values(np.int32, (1, 16), 2) // 2
    result = client.infer(
        "add_sub",
        [make_input(client.module, "INPUT0", a), make_input(client.module, "INPUT1", b)],
        outputs=[client.module.InferRequestedOutput("OUTPUT1")],
        request_id="my-id",
    )
    response = result.get_response()
    if client.module is grpcclient:
        assert response.id == "my-id" and [o.name for o in response.outputs] == ["OUTPUT1"]
    else:
        assert response["id"] == "my-id" and [o["name"] for o in response["outputs"]] == ["OUTPUT1"]
    assert np.array_equal(result.as_numpy("OUTPUT1"), a - b)


def test_classification(client):
    array = np.array([[0.1, 0.7, 0.0, 0.2]], dtype=np.float32)
    result = client.infer(
        "identity_fp32",
        [make_input(client.module, "INPUT0", array)],
        outputs=[client.module.InferRequestedOutput("OUTPUT0", class_count=2)],
    )
    assert [b.decode() for b in result.as_numpy("OUTPUT0").reshape(-1)] == ["0.700000:1", "0.200000:3"]


def test_concurrent_requests_are_batched_and_each_gets_its_own_rows(client):
    """Rows of many callers share executions; nobody gets another's rows."""
    before = executions(client, "batcher")
    arrays = [values(np.float32, (1 + i % 3, 4), seed=100 + i) for i in range(60)]
    if client.module is httpclient:
        pending = [client.async_infer("batcher", [make_input(httpclient, "INPUT0", a)]) for a in arrays]
        results = [p.get_result() for p in pending]
    else:
        with ThreadPoolExecutor(16) as pool:
            results = list(pool.map(lambda a: client.infer("batcher", [make_input(grpcclient, "INPUT0", a)]), arrays))
    for array, result in zip(arrays, results):
        assert np.array_equal(result.as_numpy("OUTPUT0"), array)
    after = executions(client, "batcher")
    assert after[0] - before[0] == sum(len(a) for a in arrays), "inference count counts rows"
    assert after[1] - before[1] < len(arrays), "requests shared executions"


def executions(client, model):
    statistics = client.get_inference_statistics(model)
    if client.module is grpcclient:
        entry = statistics.model_stats[0]
        return entry.inference_count, entry.execution_count
    entry = statistics["model_stats"][0]
    return entry["inference_count"], entry["execution_count"]


def test_one_failing_request_leaves_its_batch_mates_alone(client):
    """The model throws for an index that is out of range; requests around it in the same batches still get answers."""

    def ask(index):
        tensor = make_input(client.module, "INPUT0", np.array([[index]], dtype=np.int64))
        try:
            return client.infer("gather", [tensor]).as_numpy("OUTPUT0")[0, 0]
        except InferenceServerException as error:
            return error

    indices = [0, 1, 99, 2, 3, 99, 0, 1, 2, 3, 99, 1]
    with ThreadPoolExecutor(12 if client.module is grpcclient else 1) as pool:
        answers = list(pool.map(ask, indices))
    for index, answer in zip(indices, answers):
        if index == 99:
            assert isinstance(answer, InferenceServerException), index
            assert "out of" in str(answer) and "bounds" in str(answer), answer
        else:
            assert answer == (index + 1) * 10, index


def test_streaming_infer_answers_in_request_order(grpc):
    answers = []
    grpc.start_stream(callback=lambda result, error: answers.append((result, error)))
    arrays = [values(np.float32, (1, 4), seed=i) for i in range(20)]
    for i, array in enumerate(arrays):
        grpc.async_stream_infer("identity_fp32", [make_input(grpcclient, "INPUT0", array)], request_id=str(i))
    grpc.stop_stream()
    assert [a[1] for a in answers] == [None] * 20
    assert [a[0].get_response().id for a in answers] == [str(i) for i in range(20)]
    for array, (result, _) in zip(arrays, answers):
        assert np.array_equal(result.as_numpy("OUTPUT0"), array)


BAD_REQUESTS = {
    "unknown input": (lambda m: [make_input(m, "NOPE", np.zeros((1, 4), np.float32))], "NOPE"),
    "wrong datatype": (lambda m: [make_input(m, "INPUT0", np.zeros((1, 4), np.int32))], "data-type is 'INT32', but model 'identity_fp32' expects 'FP32'"),
    "wrong shape": (lambda m: [make_input(m, "INPUT0", np.zeros((1, 5), np.float32))], "unexpected shape for input 'INPUT0' for model 'identity_fp32'. Expected [-1,4], got [1,5]"),
    "batch too large": (lambda m: [make_input(m, "INPUT0", np.zeros((9, 4), np.float32))], "batch-size must be <= 8 for 'identity_fp32'"),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests_are_told_what_is_wrong(client, case):
    inputs, text = BAD_REQUESTS[case]
    with pytest.raises(InferenceServerException) as caught:
        client.infer("identity_fp32", inputs(client.module))
    assert text in caught.value.message()
    assert caught.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")


def test_unknown_model(client):
    with pytest.raises(InferenceServerException, match="Request for unknown model: 'nope' is not found"):
        client.infer("nope", [make_input(client.module, "INPUT0", np.zeros((1, 4), np.float32))])


def test_repository_index_lists_broken_models_with_a_reason(client):
    index = client.get_model_repository_index()
    if client.module is grpcclient:
        index = [{"name": m.name, "version": m.version, "state": m.state, "reason": m.reason} for m in index.models]
    states = {m["name"]: m for m in index}
    assert states["add_sub"]["state"] == "READY"
    assert states["broken_config"]["state"] == "UNAVAILABLE"
    assert "config.pbtxt" in states["broken_config"]["reason"]


def test_bad_json_is_a_clients_fault(http_address):
    request = urllib.request.Request(f"http://{http_address}/v2/models/add_sub/infer", data=b'{"inputs": [', method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 400
    assert "failed to parse the request JSON buffer" in json.load(caught.value)["error"]
