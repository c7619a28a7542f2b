/** Sends recorded gRPC messages byte for byte, and reads the answers as protobuf's JSON. */
import { fromBinary, toJson, type DescMessage, type DescMethod } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status as codes, type ServiceError, type StatusObject } from '@grpc/grpc-js';
import { GRPCInferenceService } from '@paceline/protocol/grpc';
import { Health } from '@paceline/protocol/health';
import type { GrpcAnswer, GrpcCall, Json } from './recording.js';

const PATIENCE_MS = 30_000;
/** grpc-js's own numbers; its enum of them is declared in a way that isolated modules cannot use. */
const COMPRESSION = { deflate: 1, gzip: 2 } as const;
const METHODS: ReadonlyMap<string, DescMethod> = new Map(
  [GRPCInferenceService, Health].flatMap((service) =>
    service.methods.map((method): [string, DescMethod] => [`/${service.typeName}/${method.name}`, method]),
  ),
);

const asIs = (bytes: Buffer): Buffer => bytes;

function readMessage(type: DescMessage | undefined, bytes: Buffer): Json {
  if (type === undefined) return { base64: bytes.toString('base64') };
  return toJson(type, fromBinary(type, bytes), { useProtoFieldName: true });
}

function metadataOf(call: GrpcCall): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(call.metadata ?? {})) metadata.add(name, value);
  return metadata;
}

export class GrpcExchanges {
  readonly #client: Client;
  readonly #compressing = new Map<'gzip' | 'deflate', Client>();

  constructor(private readonly address: string) {
    this.#client = new Client(address, credentials.createInsecure());
  }

  exchange(call: GrpcCall): Promise<GrpcAnswer> {
    return call.messages === undefined ? this.#unary(call) : this.#stream(call, call.messages);
  }

  close(): void {
    this.#client.close();
    for (const client of this.#compressing.values()) client.close();
  }

  #clientFor({ compression }: GrpcCall): Client {
    if (compression === undefined) return this.#client;
    const known = this.#compressing.get(compression);
    if (known) return known;
    const client = new Client(this.address, credentials.createInsecure(), {
      'grpc.default_compression_algorithm': COMPRESSION[compression],
    });
    this.#compressing.set(compression, client);
    return client;
  }

  #unary(call: GrpcCall): Promise<GrpcAnswer> {
    const type = METHODS.get(call.method)?.output;
    return new Promise((resolve) => {
      const deadline = Date.now() + (call.timeoutMs ?? PATIENCE_MS);
      const done = (error: ServiceError | null, bytes?: Buffer): void => {
        if (error) resolve({ code: codes[error.code], details: error.details });
        else resolve({ code: 'OK', details: '', message: readMessage(type, bytes ?? Buffer.alloc(0)) });
      };
      const message = Buffer.from(call.message ?? '', 'base64');
      this.#clientFor(call).makeUnaryRequest(call.method, asIs, asIs, message, metadataOf(call), { deadline }, done);
    });
  }

  #stream(call: GrpcCall, messages: readonly string[]): Promise<GrpcAnswer> {
    const type = METHODS.get(call.method)?.output;
    return new Promise((resolve) => {
      const deadline = Date.now() + (call.timeoutMs ?? PATIENCE_MS);
      const stream = this.#clientFor(call).makeBidiStreamRequest(call.method, asIs, asIs, metadataOf(call), { deadline });
      const answers: Json[] = [];
      const perRequest = call.responsesPerRequest ?? 1;
      let sent = 0;
      let due = 0;
      const sendWhatIsDue = (): void => {
        while (sent < messages.length && (call.lockstep === false || answers.length >= due)) {
          due += typeof perRequest === 'number' ? perRequest : (perRequest[sent] ?? 0);
          stream.write(Buffer.from(messages[sent] as string, 'base64'));
          sent += 1;
        }
        if (sent === messages.length && (call.lockstep === false || answers.length >= due)) stream.end();
      };
      stream.on('data', (bytes: Buffer) => {
        answers.push(readMessage(type, bytes));
        sendWhatIsDue();
      });
      stream.on('error', () => undefined); // 'status' follows
      stream.on('status', ({ code, details }: StatusObject) => {
        // grpc-js writes "OK" as the message of a good end, where others write none; it means nothing.
        resolve({ code: codes[code], details: code === codes.OK ? '' : details, messages: answers });
      });
      sendWhatIsDue();
    });
  }
}
