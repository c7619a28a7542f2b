/** FNV-1a (Fowler, Noll, Vo) over UTF-16 units: every process and every release gives the same text the same number. */

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** @returns an unsigned 32-bit number */
export function fnv1a(text: string): number {
  let hash = OFFSET;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    hash = Math.imul(hash ^ (unit & 0xff), PRIME);
    hash = Math.imul(hash ^ (unit >>> 8), PRIME);
  }
  // The low bits of FNV-1a mix poorly for short texts, and a modulus by a power of two sees nothing else.
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return hash >>> 0;
}
