/** Reply frames on the wire: results with their tensors and timings, or an error. */
import type { ReplyFrame, StageTimings } from '../infer.js';
import type { WireReader } from './reader.js';
import { readServingError, writeServingError } from './serving-error.js';
import { readTensors, writeTensors } from './tensors.js';
import type { WireWriter } from './writer.js';

const OK = 1;
const FINAL = 2;
const HAS_TIMINGS = 4;

export function writeReplyFrame(writer: WireWriter, frame: ReplyFrame): void {
  if (!frame.ok) {
    writer.u8(FINAL);
    writeServingError(writer, frame.error);
    return;
  }
  const { timings } = frame;
  writer.u8(OK | (frame.final ? FINAL : 0) | (timings ? HAS_TIMINGS : 0));
  writer.varint(frame.index);
  writeTensors(writer, frame.outputs);
  if (timings) writeTimings(writer, timings);
}

/** The output tensors are views into what is read. */
export function readReplyFrame(reader: WireReader): ReplyFrame {
  const flags = reader.u8('reply flags');
  if (!(flags & OK)) return { ok: false, final: true, error: readServingError(reader) };
  return {
    ok: true,
    index: reader.varint('reply index'),
    final: (flags & FINAL) !== 0,
    outputs: readTensors(reader),
    timings: flags & HAS_TIMINGS ? readTimings(reader) : undefined,
  };
}

function writeTimings(writer: WireWriter, timings: StageTimings): void {
  writer.f64(timings.queueNs);
  writer.f64(timings.computeInputNs);
  writer.f64(timings.computeInferNs);
  writer.f64(timings.computeOutputNs);
  writer.varint(timings.batchRows);
}

function readTimings(reader: WireReader): StageTimings {
  return {
    queueNs: reader.f64('queue time'),
    computeInputNs: reader.f64('compute input time'),
    computeInferNs: reader.f64('compute infer time'),
    computeOutputNs: reader.f64('compute output time'),
    batchRows: reader.varint('batch rows'),
  };
}
