/** ModelInfer messages with the length prefix that gRPC puts before each, made before a run. */
import { create, toBinary } from '@bufbuild/protobuf';
import { ModelInferRequestSchema } from '@paceline/protocol/grpc';
import type { BenchModel } from '../models/catalog.js';
import { inputBatch, rawBytes } from './inputs.js';

export const MODEL_INFER_PATH = '/inference.GRPCInferenceService/ModelInfer';

export function inferMessage(model: BenchModel, index: number): Uint8Array {
  return toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: model.name,
      inputs: [{ name: model.inputName, datatype: 'FP32', shape: [1n, ...model.inputShape.map(BigInt)] }],
      rawInputContents: [rawBytes(inputBatch(model, index, 1))],
    }),
  );
}

/** One frame per row of the pool: a zero (not compressed), four bytes of length, the message. */
export function inferFrames(model: BenchModel): Buffer[] {
  return Array.from({ length: model.poolSize }, (_, index) => {
    const message = inferMessage(model, index);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    return Buffer.concat([prefix, message]);
  });
}
