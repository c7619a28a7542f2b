"""Trains the `breast_cancer` example model: 200 gradient-boosted trees on scikit-learn's bundled Wisconsin data.

The held-out fifth of the rows (fixed seed) is never trained on; the exported file must classify at least 94 % of it
correctly and agree with scikit-learn on every row, or nothing is written. The samples come from that fifth.

Run from anywhere: pip install scikit-learn skl2onnx onnxruntime && python train.py
"""
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 7


def export(trees: GradientBoostingClassifier, features: int) -> onnx.ModelProto:
    """features FP32 [N,30] -> probabilities FP32 [N,2], label INT64 [N,1]."""
    model = to_onnx(
        trees,
        initial_types=[("features", FloatTensorType([None, features]))],
        options={id(trees): {"zipmap": False}},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )
    # The converter's label has rank 1; with a second dimension a batching server can cut it by rows and keep [1].
    graph = model.graph
    label = next(output for output in graph.output if output.name == "label")
    for node in graph.node:
        node.output[:] = ["label_flat" if name == "label" else name for name in node.output]
        node.input[:] = ["label_flat" if name == "label" else name for name in node.input]
    graph.initializer.append(numpy_helper.from_array(np.array([-1, 1], np.int64), "column"))
    graph.node.append(helper.make_node("Reshape", ["label_flat", "column"], ["label"]))
    label.CopyFrom(helper.make_tensor_value_info("label", TensorProto.INT64, ["N", 1]))
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def write_sample(name: str, row: np.ndarray) -> None:
    folder = HERE / "samples"
    folder.mkdir(exist_ok=True)
    body = {
        "inputs": [{"name": "features", "datatype": "FP32", "shape": [1, len(row)], "data": [float(f"{v:.6g}") for v in row]}],
        "outputs": [{"name": "label"}, {"name": "probabilities", "parameters": {"classification": 2}}],
    }
    (folder / f"{name}.json").write_text(json.dumps(body) + "\n")


def main() -> None:
    data = load_breast_cancer()
    rows, held_rows, kinds, held_kinds = train_test_split(
        data.data.astype(np.float32), data.target, test_size=0.2, random_state=SEED, stratify=data.target
    )
    trees = GradientBoostingClassifier(n_estimators=200, max_depth=3, subsample=0.8, random_state=SEED).fit(rows, kinds)
    model = export(trees, rows.shape[1])
    session = ort.InferenceSession(model.SerializeToString())
    probabilities, label = session.run(["probabilities", "label"], {"features": held_rows})
    accuracy = float((label[:, 0] == held_kinds).mean())
    print(f"held-out rows classified correctly: {accuracy:.4f} of {len(held_kinds)}")
    disagreement = float(np.abs(probabilities - trees.predict_proba(held_rows)).max())
    print(f"largest difference from scikit-learn: {disagreement:.2e}")
    if accuracy < 0.94 or disagreement > 1e-4:
        raise SystemExit("not good enough: not written")
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, HERE / "1" / "model.onnx")
    for name, kind in (("malignant", 0), ("benign", 1)):
        write_sample(name, held_rows[int(np.argmax(np.where(held_kinds == kind, probabilities[:, kind], -1)))])


if __name__ == "__main__":
    main()
