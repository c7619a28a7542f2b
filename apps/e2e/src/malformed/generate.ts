/** From (seed, index) to one malformed request: any case can be made again without the ones before it. */
import { Draw } from '../support/draw.js';
import { binaryAttack } from './binary.attacks.js';
import type { MalformedCase } from './case.js';
import { compressionAttack } from './compression.attacks.js';
import { framingAttack } from './framing.attacks.js';
import { grpcAttack } from './grpc.attacks.js';
import { jsonAttack } from './json.attacks.js';

/** Of each thirteen cases, how many are of which family. */
const ATTACKS = [
  jsonAttack,
  jsonAttack,
  jsonAttack,
  binaryAttack,
  binaryAttack,
  binaryAttack,
  framingAttack,
  framingAttack,
  framingAttack,
  grpcAttack,
  grpcAttack,
  grpcAttack,
  compressionAttack,
] as const;

export function malformedCase(seed: number, index: number): MalformedCase {
  return ATTACKS[index % ATTACKS.length]!(new Draw(seed, index));
}
