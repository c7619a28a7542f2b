/** One ModelStreamInfer call for tests. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, type ClientDuplexStream } from '@grpc/grpc-js';
import { ModelInferRequestSchema, ModelStreamInferResponseSchema } from '@paceline/protocol/grpc';
import type { RawInput } from '../support/grpc-infer.js';

export class InferStream {
  readonly #client: Client;
  readonly #stream: ClientDuplexStream<Uint8Array, Buffer>;

  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure());
    this.#stream = this.#client.makeBidiStreamRequest(
      '/inference.GRPCInferenceService/ModelStreamInfer',
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes: Buffer) => bytes,
    );
    this.#stream.on('error', () => undefined); // the status says it, too
  }

  send(model: string, id: string, ...inputs: readonly RawInput[]): void {
    const request = create(ModelInferRequestSchema, {
      modelName: model,
      id,
      inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: shape.map(BigInt) })),
      rawInputContents: inputs.map(({ data }) => data),
    });
    this.#stream.write(toBinary(ModelInferRequestSchema, request));
  }

  cancel(): void {
    this.#stream.cancel();
  }

  /** @param onAnswer told of each response: its id, the bytes of its output, its error or "". @returns the final status */
  run(onAnswer: (id: string, data: Buffer, error: string) => void): Promise<number> {
    this.#stream.on('data', (bytes: Buffer) => {
      const { inferResponse, errorMessage } = fromBinary(ModelStreamInferResponseSchema, bytes);
      onAnswer(inferResponse?.id ?? '', Buffer.from(inferResponse?.rawOutputContents[0] ?? Buffer.alloc(0)), errorMessage);
    });
    return new Promise((resolve) => {
      this.#stream.on('status', ({ code }) => {
        this.#client.close();
        resolve(code);
      });
    });
  }
}
