/**
 * A server that is attacked: small models, explicit control, a small limit of bodies. Remembers every error that a client
 * was told, so that a test can look for what should not stand there.
 */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identityModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { FIXTURE_MODELS } from './fixture-models.js';
import { startServer, type ServerProcess } from './server-process.js';

export const MAX_INPUT_BYTES = 4_000_000;
export const INFER = '/v2/models/identity_fp32/infer';
export const GOOD = { inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] };
/** Of the models that tests write by hand. */
export const CONFIG = `backend: "onnxruntime"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
`;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export class AttackedServer {
  readonly #told: string[] = [];

  private constructor(
    readonly process: ServerProcess,
    readonly repository: TemporaryRepository,
    /** A folder that nothing of the server has any business in. */
    readonly outside: string,
  ) {}

  static async start(): Promise<AttackedServer> {
    const repository = temporaryModelRepository(FIXTURE_MODELS);
    const flags = ['--model-control-mode=explicit', '--load-model=identity_fp32', `--http-max-input-size=${MAX_INPUT_BYTES}`];
    const process = await startServer([`--model-repository=${repository.root}`, ...flags]);
    return new AttackedServer(process, repository, mkdtempSync(join(tmpdir(), 'outside-')));
  }

  get pid(): number {
    return this.process.child.pid!;
  }

  /** The bodies of all errors so far. */
  get told(): readonly string[] {
    return this.#told;
  }

  async stop(): Promise<void> {
    await this.process.stop();
    this.repository.remove();
    rmSync(this.outside, { recursive: true });
  }

  async call(method: string, path: string, body?: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const init = { method, headers, ...(body !== undefined && { body: new Uint8Array(Buffer.from(body)) }) };
    const response = await fetch(`http://${this.process.http}${path}`, init);
    const text = await response.text();
    if (response.status >= 400) this.#told.push(text);
    return { status: response.status, text };
  }

  /** Sends bytes as they are. @returns what came until the server closed */
  async raw(...pieces: readonly (string | Buffer)[]): Promise<string> {
    const [host = '', port = ''] = this.process.http.split(':');
    const socket = connect(Number(port), host);
    let received = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1'))).on('error', () => undefined);
    const closed = new Promise<void>((resolve) => void socket.on('close', () => resolve()));
    for (const piece of pieces)
      if (!socket.write(piece) && !socket.destroyed) await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
    await closed;
    return received;
  }

  load(model: string, parameters: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
    return this.call('POST', `/v2/repository/models/${model}/load`, JSON.stringify({ parameters }));
  }

  /** Writes a model folder; `files` are relative to it. */
  writeModel(name: string, config: string, files: Readonly<Record<string, string | Uint8Array>> = {}): string {
    const folder = join(this.repository.root, name);
    mkdirSync(join(folder, '1'), { recursive: true });
    writeFileSync(join(folder, 'config.pbtxt'), config);
    writeFileSync(join(folder, '1', 'model.onnx'), identityModel({ datatype: 'FP32', dims: [4] }));
    for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);
    return folder;
  }

  removeModel(name: string): void {
    rmSync(join(this.repository.root, name), { recursive: true });
  }
}
