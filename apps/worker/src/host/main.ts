/**
 * Entry of the Node instance host: a process that runs models for the worker that started it. It reads frames
 * (../host-protocol/frames.ts) from descriptor 3 and answers each before the next. It ends when the worker does, and
 * ignores the signals that a terminal sends to a whole group, because only the worker knows what is still running.
 *
 * Arguments: --shm-fd=N descriptor of the shared-memory file; --api=binding|session.
 */
import { writeSync } from 'node:fs';
import { emptyFrame, FRAME, jsonBody, jsonFrame } from '../host-protocol/frames.js';
import type { FailedMessage, HostStatistics, LoadedMessage, LoadMessage } from '../host-protocol/messages.js';
import { STATUS_BYTES } from '../host-protocol/shared-memory.js';
import { HostChannel } from './channel.js';
import { DEVICE_FAILED, HostError } from './host-error.js';
import { loadInstance, type HostContext, type HostedModel } from './host-instance.js';
import type { HostRuntime } from './host-runtime.js';
import type { OrtTensor } from './onnx-runtime.js';
import { simulatedHost } from './simulated-accelerator.js';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

const options = new Map(process.argv.slice(2).map((a) => a.split('=', 2) as [string, string]));
const shmFd = options.has('--shm-fd') ? Number(options.get('--shm-fd')) : undefined;
const channel = new HostChannel(3);
const instances = new Map<number, HostedModel>();
const cancelled = new Set<number>();
const status = Buffer.alloc(STATUS_BYTES);
status.writeUInt32LE(1, 4);
const context: HostContext = {
  shmFd,
  copied: { inBytes: 0, outBytes: 0 },
  announce(instance, sequence, byFrame) {
    if (shmFd !== undefined) {
      status.writeUInt32LE(sequence, 0);
      writeSync(shmFd, status, 0, STATUS_BYTES, 0);
    }
    if (byFrame) channel.write([emptyFrame(FRAME.started, instance, sequence)]);
  },
};
let executions = 0;
let onnx: HostRuntime<OrtTensor> | undefined;

/** ONNX Runtime takes tens of megabytes and milliseconds: only a host that needs it loads it. */
async function onnxHost(): Promise<HostRuntime<OrtTensor>> {
  if (onnx) return onnx;
  const { openOnnxHost } = await import('./onnx-session.js');
  return (onnx = openOnnxHost(options.get('--api') === 'session' ? 'session' : 'binding'));
}

async function load(instance: number, sequence: number, message: LoadMessage): Promise<void> {
  context.announce(instance, sequence, shmFd === undefined);
  const runtime = message.backend === 'simulated' ? simulatedHost : await onnxHost();
  // Each knows its own tensors; nothing here looks at them.
  const model = await loadInstance(runtime as HostRuntime<unknown>, message, context);
  instances.set(instance, model);
  const loaded: LoadedMessage = { api: runtime.api };
  channel.write([jsonFrame(FRAME.loaded, instance, sequence, loaded)]);
}

async function unload(instance: number, sequence: number): Promise<void> {
  await instances.get(instance)?.dispose();
  instances.delete(instance);
  channel.write([emptyFrame(FRAME.unloaded, instance, sequence)]);
}

function statistics(): HostStatistics {
  return {
    copiedInBytes: context.copied.inBytes,
    copiedOutBytes: context.copied.outBytes,
    executions,
    rssBytes: process.memoryUsage.rss(),
  };
}

function instanceOf(id: number): HostedModel {
  const instance = instances.get(id);
  if (!instance) throw new HostError('INTERNAL', 'unknown_instance', `this host has no instance ${id}`);
  return instance;
}

/** A promise only where something has to be waited for: small batches never meet the event loop. */
function handle(frame: Buffer): void | Promise<void> {
  const instance = frame.readUInt32LE(8);
  const sequence = frame.readUInt32LE(12);
  switch (frame.readUInt32LE(4)) {
    case FRAME.execute: {
      for (const later of channel.arrived()) if (later.readUInt32LE(4) === FRAME.cancel) cancelled.add(later.readUInt32LE(12));
      if (cancelled.delete(sequence)) throw new HostError('CANCELLED', 'cancelled', 'the batch was cancelled before it began');
      executions++;
      const parts = instanceOf(instance).execute(frame);
      if (parts instanceof Promise) return parts.then((done) => channel.write(done));
      return channel.write(parts);
    }
    case FRAME.load:
      return load(instance, sequence, jsonBody(frame) as LoadMessage);
    case FRAME.unload:
      return unload(instance, sequence);
    case FRAME.ping:
      return channel.write([emptyFrame(FRAME.pong, 0, sequence)]);
    case FRAME.stats:
      return channel.write([jsonFrame(FRAME.statistics, 0, sequence, statistics())]);
    case FRAME.cancel:
      cancelled.delete(sequence);
      return;
    default:
      throw new HostError('INTERNAL', 'unknown_frame', `frame of unknown type ${frame.readUInt32LE(4)}`);
  }
}

function fail(frame: Buffer, error: unknown): void {
  const failed: FailedMessage =
    error instanceof HostError
      ? { code: error.code, reason: error.reason, message: error.message }
      : { code: 'INTERNAL', reason: 'host_failed', message: `instance host: ${error instanceof Error ? error.message : String(error)}` };
  channel.write([jsonFrame(FRAME.failed, frame.readUInt32LE(8), frame.readUInt32LE(12), failed)]);
  // After a fault CUDA fails every later call of the process: only another one can go on.
  if (failed.reason === DEVICE_FAILED) process.kill(process.pid, 'SIGKILL');
}

for (let frame = channel.read(); frame; frame = channel.read()) {
  try {
    const pending = handle(frame);
    if (pending) await pending;
  } catch (error) {
    fail(frame, error);
  }
}
// The worker has gone. Tearing the sessions down would only take time, and could hang.
process.kill(process.pid, 'SIGKILL');
