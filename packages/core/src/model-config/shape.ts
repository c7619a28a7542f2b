/** Shapes in messages, in the form `[-1,4]`. */

/** `[-1,4]`; `[?]` where the rank is unknown. */
export function formatShape(shape: readonly (number | bigint)[] | undefined): string {
  return shape === undefined ? '[?]' : `[${shape.join(',')}]`;
}
