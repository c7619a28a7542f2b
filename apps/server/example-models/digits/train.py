"""Trains the `digits` example model on the handwritten digits bundled with scikit-learn and writes it as ONNX.

The held-out fifth of the pictures (fixed seed) is never trained on; at least 97 % of it must be read correctly by the
exported file, or nothing is written. The request bodies in samples/ come from that fifth.

Run from anywhere: pip install scikit-learn onnx onnxruntime pillow && python train.py
"""
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).resolve().parent
SEED = 20
INK_MAX = 16.0  # the data set counts ink per pixel from 0 to 16
SAMPLES = {"seven": 7, "three": 3, "zero": 0}


def train(pixels: np.ndarray, digits: np.ndarray) -> MLPClassifier:
    network = MLPClassifier((128, 64), alpha=1e-2, batch_size=64, max_iter=120, random_state=SEED)
    return network.fit(pixels.reshape(len(pixels), -1) / INK_MAX, digits)


def to_onnx(network: MLPClassifier) -> onnx.ModelProto:
    """pixels FP32 [N,8,8], ink 0 to 16 -> probabilities FP32 [N,10], label INT64 [N,1]."""
    constants = [
        numpy_helper.from_array(np.array(1 / INK_MAX, np.float32), "ink_scale"),
        numpy_helper.from_array(np.array([0, 64], np.int64), "flat"),
    ]
    nodes = [
        helper.make_node("Reshape", ["pixels", "flat"], ["ink"]),
        helper.make_node("Mul", ["ink", "ink_scale"], ["h0"]),
    ]
    last = len(network.coefs_) - 1
    for i, (weights, bias) in enumerate(zip(network.coefs_, network.intercepts_)):
        constants += [
            numpy_helper.from_array(weights.astype(np.float32), f"w{i}"),
            numpy_helper.from_array(bias.astype(np.float32), f"b{i}"),
        ]
        nodes.append(helper.make_node("Gemm", [f"h{i}", f"w{i}", f"b{i}"], ["logits" if i == last else f"z{i}"]))
        if i < last:
            nodes.append(helper.make_node("Relu", [f"z{i}"], [f"h{i + 1}"]))
    nodes += [
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["N", 8, 8])],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10]),
            helper.make_tensor_value_info("label", TensorProto.INT64, ["N", 1]),
        ],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="paceline-examples")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def write_sample(name: str, picture: np.ndarray) -> None:
    folder = HERE / "samples"
    folder.mkdir(exist_ok=True)
    body = {
        "inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 8, 8], "data": picture.astype(int).flatten().tolist()}],
        "outputs": [{"name": "label"}, {"name": "probabilities", "parameters": {"classification": 3}}],
    }
    (folder / f"{name}.json").write_text(json.dumps(body) + "\n")
    grey = (255 - picture * 255 / INK_MAX).astype(np.uint8)
    Image.fromarray(grey).resize((160, 160), Image.Resampling.NEAREST).save(folder / f"{name}.png", optimize=True)


def main() -> None:
    data = load_digits()
    pixels, held_pixels, digits, held_digits = train_test_split(
        data.images.astype(np.float32), data.target, test_size=0.2, random_state=SEED, stratify=data.target
    )
    model = to_onnx(train(pixels, digits))
    session = ort.InferenceSession(model.SerializeToString())
    probabilities, label = session.run(["probabilities", "label"], {"pixels": held_pixels})
    accuracy = float((label[:, 0] == held_digits).mean())
    print(f"held-out pictures read correctly: {accuracy:.4f} of {len(held_digits)}")
    if accuracy < 0.97:
        raise SystemExit("below 97 %: not written")
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, HERE / "1" / "model.onnx")
    for name, digit in SAMPLES.items():
        i = int(np.argmax(np.where(held_digits == digit, probabilities[:, digit], -1)))
        write_sample(name, held_pixels[i])


if __name__ == "__main__":
    main()
