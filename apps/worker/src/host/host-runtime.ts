/**
 * What an instance host asks of the library that runs its models. Tensors go in and out in the library's own form `T`,
 * made by `feed` and unmade by `bytesOf`, so that each runtime copies only what it must. Names of inputs and outputs are
 * those that the load named; wrong ones never reach a runtime.
 */
import type { DataType } from '@paceline/tensor';
import type { LoadedMessage, LoadMessage } from '../host-protocol/messages.js';

export interface HostSession<T> {
  /**
   * One input of the next run.
   * @param data its bytes in canonical form, borrowed until that run is over
   * @throws HostError naming the input where the bytes do not make such a tensor
   */
  feed(name: string, datatype: DataType, shape: readonly number[], data: Buffer): T;
  /**
   * @param outputs names of the outputs to compute; all of them are in the answer
   * @returns a promise only where the runtime needs one
   * @throws HostError
   */
  run(feeds: Readonly<Record<string, T>>, outputs: readonly string[]): Readonly<Record<string, T>> | Promise<Readonly<Record<string, T>>>;
  shapeOf(tensor: T): readonly number[];
  /** Its bytes in canonical form; may be a view that is valid until the next run. */
  bytesOf(tensor: T): Uint8Array;
  dispose(): void | Promise<void>;
}

export interface HostRuntime<T> {
  readonly api: LoadedMessage['api'];
  /** @throws HostError when the model cannot be loaded, or is not what the message says */
  load(message: LoadMessage): HostSession<T> | Promise<HostSession<T>>;
}
