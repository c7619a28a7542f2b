/** What a model file says about itself, as far as configuration is concerned; read by the repository, judged by the core. */
import type { DataType } from '@paceline/tensor';

/** One graph input or output of a model file. */
export interface ModelFileTensor {
  readonly name: string;
  /** undefined where the protocol has no such type; `elementType` then says what it is. */
  readonly datatype: DataType | undefined;
  /** The file format's own word, for messages: `FLOAT`, `FLOAT8E4M3FN`, `sequence`. */
  readonly elementType: string;
  /** -1 for each symbolic or unknown dimension; undefined where the file does not state the rank. */
  readonly shape: readonly number[] | undefined;
  /** Inputs only: the file carries a default value for it. */
  readonly hasDefault: boolean;
}

export interface ModelFileDescription {
  /** In the order of the file. */
  readonly inputs: readonly ModelFileTensor[];
  readonly outputs: readonly ModelFileTensor[];
  readonly irVersion: number;
  /** Operator set version per domain; "" is the default domain. */
  readonly opsets: Readonly<Record<string, number>>;
  readonly producer: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Types of the operators it is made of, nested graphs and functions included, without duplicates. */
  readonly operators: readonly string[];
}
