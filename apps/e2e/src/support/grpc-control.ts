/** The repository methods of gRPC, for tests. */
import { create, fromBinary, toBinary, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  RepositoryIndexRequestSchema,
  RepositoryIndexResponseSchema,
  RepositoryModelLoadRequestSchema,
  RepositoryModelLoadResponseSchema,
  RepositoryModelUnloadRequestSchema,
  RepositoryModelUnloadResponseSchema,
} from '@paceline/protocol/grpc';

export class GrpcControl {
  readonly #client: Client;

  /** @param address `host:port` */
  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure());
  }

  /** @throws grpc-js's ServiceError, as the others */
  async load(modelName: string): Promise<void> {
    const request = toBinary(RepositoryModelLoadRequestSchema, create(RepositoryModelLoadRequestSchema, { modelName }));
    await this.#call('RepositoryModelLoad', request, RepositoryModelLoadResponseSchema);
  }

  async unload(modelName: string): Promise<void> {
    const request = toBinary(RepositoryModelUnloadRequestSchema, create(RepositoryModelUnloadRequestSchema, { modelName }));
    await this.#call('RepositoryModelUnload', request, RepositoryModelUnloadResponseSchema);
  }

  /** As the index over HTTP: what is empty is left out. */
  async index(): Promise<readonly object[]> {
    const request = toBinary(RepositoryIndexRequestSchema, create(RepositoryIndexRequestSchema, {}));
    const { models } = await this.#call('RepositoryIndex', request, RepositoryIndexResponseSchema);
    return models.map(({ name, version, state, reason }) =>
      Object.fromEntries(Object.entries({ name, version, state, reason }).filter(([, value]) => value !== '')),
    );
  }

  close(): void {
    this.#client.close();
  }

  #call<Schema extends DescMessage>(method: string, request: Uint8Array, schema: Schema): Promise<MessageShape<Schema>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/inference.GRPCInferenceService/${method}`,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes: Buffer) => bytes,
        request,
        (error, bytes) => (error === null ? resolve(fromBinary(schema, bytes ?? Buffer.alloc(0))) : reject(error)),
      );
    });
  }
}
