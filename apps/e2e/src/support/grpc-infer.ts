/** ModelInfer for tests: one raw input in, the raw bytes of the first output back. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { ModelInferRequestSchema, ModelInferResponseSchema } from '@paceline/protocol/grpc';
import type { DataType } from '@paceline/tensor';

const MODEL_INFER = '/inference.GRPCInferenceService/ModelInfer';

export interface RawInput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly data: Buffer;
}

export interface RawAnswer {
  readonly id: string;
  readonly outputs: readonly { readonly name: string; readonly shape: readonly number[]; readonly data: Buffer }[];
}

export class GrpcInfer {
  readonly #client: Client;

  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure());
  }

  /**
   * @param options a deadline in milliseconds since the epoch; a signal that cancels the call; a W3C trace context
   * @throws grpc-js's ServiceError
   */
  infer(
    model: string,
    id: string,
    inputs: readonly RawInput[],
    options: { readonly deadline?: number; readonly signal?: AbortSignal; readonly traceparent?: string } = {},
  ): Promise<RawAnswer> {
    const request = create(ModelInferRequestSchema, {
      modelName: model,
      id,
      inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: shape.map(BigInt) })),
      rawInputContents: inputs.map(({ data }) => data),
    });
    const metadata = new Metadata();
    if (options.traceparent !== undefined) metadata.set('traceparent', options.traceparent);
    return new Promise((resolve, reject) => {
      const { deadline, signal } = options;
      const call = this.#client.makeUnaryRequest(
        MODEL_INFER,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes: Buffer) => bytes,
        toBinary(ModelInferRequestSchema, request),
        metadata,
        deadline === undefined ? {} : { deadline },
        (error, bytes) => {
          if (error !== null) return reject(error);
          const answer = fromBinary(ModelInferResponseSchema, bytes ?? Buffer.alloc(0));
          const outputs = answer.outputs.map(({ name, shape }, i) => ({
            name,
            shape: shape.map(Number),
            data: Buffer.from(answer.rawOutputContents[i] ?? Buffer.alloc(0)),
          }));
          resolve({ id: answer.id, outputs });
        },
      );
      signal?.addEventListener('abort', () => call.cancel(), { once: true });
    });
  }

  close(): void {
    this.#client.close();
  }
}
