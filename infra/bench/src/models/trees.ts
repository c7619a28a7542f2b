/**
 * A gradient-boosted tree ensemble of the shape that libraries export (ai.onnx.ml TreeEnsembleClassifier, two classes,
 * logistic), with seeded splits: some branches end early, so that about 15,000 nodes of 200 trees of depth 6 remain.
 */
import { onnxModel } from '@paceline/testkit';
import { seededRandom } from '../random.js';

export interface ForestShape {
  readonly trees: number;
  readonly depth: number;
  readonly features: number;
}

const EARLY_LEAF = 0.12;

interface NodeColumns {
  readonly treeIds: bigint[];
  readonly nodeIds: bigint[];
  readonly features: bigint[];
  readonly modes: string[];
  readonly thresholds: number[];
  readonly left: bigint[];
  readonly right: bigint[];
}

interface LeafColumns {
  readonly treeIds: bigint[];
  readonly nodeIds: bigint[];
  readonly weights: number[];
}

function growTree(tree: number, shape: ForestShape, random: () => number, nodes: NodeColumns, leaves: LeafColumns): void {
  let next = 0;
  const grow = (depth: number): bigint => {
    const id = BigInt(next++);
    const isLeaf = depth === shape.depth || (depth > 1 && random() < EARLY_LEAF);
    const row = nodes.nodeIds.length;
    nodes.treeIds.push(BigInt(tree));
    nodes.nodeIds.push(id);
    nodes.modes.push(isLeaf ? 'LEAF' : 'BRANCH_LEQ');
    nodes.features.push(isLeaf ? 0n : BigInt(Math.floor(random() * shape.features)));
    nodes.thresholds.push(isLeaf ? 0 : random() - 0.5);
    nodes.left.push(0n);
    nodes.right.push(0n);
    if (isLeaf) {
      leaves.treeIds.push(BigInt(tree));
      leaves.nodeIds.push(id);
      leaves.weights.push((random() - 0.5) * 0.2);
    } else {
      nodes.left[row] = grow(depth + 1);
      nodes.right[row] = grow(depth + 1);
    }
    return id;
  };
  grow(0);
}

/** x FP32 [N, features] → y FP32 [N, 2], the probabilities. Inputs are meant to lie in -1..1. */
export function forestModel(shape: ForestShape, seed: number): Uint8Array {
  const random = seededRandom(seed);
  const nodes: NodeColumns = { treeIds: [], nodeIds: [], features: [], modes: [], thresholds: [], left: [], right: [] };
  const leaves: LeafColumns = { treeIds: [], nodeIds: [], weights: [] };
  for (let tree = 0; tree < shape.trees; tree++) growTree(tree, shape, random, nodes, leaves);
  return onnxModel(
    {
      nodes: [
        {
          op: 'TreeEnsembleClassifier',
          domain: 'ai.onnx.ml',
          inputs: ['x'],
          outputs: ['label', 'y'],
          attributes: {
            nodes_treeids: nodes.treeIds,
            nodes_nodeids: nodes.nodeIds,
            nodes_featureids: nodes.features,
            nodes_modes: nodes.modes,
            nodes_values: nodes.thresholds,
            nodes_truenodeids: nodes.left,
            nodes_falsenodeids: nodes.right,
            class_treeids: leaves.treeIds,
            class_nodeids: leaves.nodeIds,
            class_ids: leaves.nodeIds.map(() => 0n),
            class_weights: leaves.weights,
            classlabels_int64s: [0n, 1n],
            post_transform: 'LOGISTIC',
          },
        },
      ],
      inputs: [{ name: 'x', datatype: 'FP32', shape: ['N', shape.features] }],
      outputs: [{ name: 'y', datatype: 'FP32', shape: ['N', 2] }],
    },
    { domains: { 'ai.onnx.ml': 3 } },
  );
}
