/**
 * FP16 and BF16 as bit patterns. Encoding rounds a double to nearest, ties to even, in one step (going through FP32
 * first would round twice). Invariant: decode(encode(x)) is the nearest representable value, overflow becomes infinity,
 * every NaN becomes the quiet NaN.
 */
const f64 = new Float64Array(1);
const u32 = new Uint32Array(f64.buffer);
const f32 = new Float32Array(1);
const f32bits = new Uint32Array(f32.buffer);

/** 2^52: adding it to a number in [0, 2^52) rounds that number to an integer, ties to even. */
const ROUNDER = 4503599627370496;

function encode(value: number, mantissaBits: number, minExponent: number, maxExponent: number): number {
  const infinity = (maxExponent + 1 - minExponent + 1) << mantissaBits;
  if (value !== value) return infinity | (1 << (mantissaBits - 1));
  f64[0] = value;
  const high = u32[1] as number;
  const sign = high >>> 31 ? 0x8000 : 0;
  const exponent = ((high >>> 20) & 0x7ff) - 1023;
  if (exponent > maxExponent) return sign | infinity;
  const magnitude = Math.abs(value);
  const e = exponent < minExponent ? minExponent : exponent;
  // In units of the last place at this exponent; scaling by a power of two is exact here.
  const steps = magnitude * 2 ** (mantissaBits - e) + ROUNDER - ROUNDER;
  // A carry out of the mantissa runs into the exponent field by itself, up to infinity.
  const bits = exponent < minExponent ? steps : ((e - minExponent) << mantissaBits) + steps;
  return sign | bits;
}

/** Nearest FP16 bit pattern, 0..65535. */
export function toFloat16Bits(value: number): number {
  return encode(value, 10, -14, 15);
}

/** Nearest BF16 bit pattern, 0..65535. */
export function toBFloat16Bits(value: number): number {
  return encode(value, 7, -126, 127);
}

/** Exact value of an FP16 bit pattern. */
export function fromFloat16Bits(bits: number): number {
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0x1f) return mantissa ? NaN : sign * Infinity;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (mantissa + 1024) * 2 ** (exponent - 25);
}

/** Exact value of a BF16 bit pattern. */
export function fromBFloat16Bits(bits: number): number {
  f32bits[0] = (bits & 0xffff) << 16;
  return f32[0] as number;
}
