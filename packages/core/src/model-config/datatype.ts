/** Maps the configuration's data types to the protocol's, and says which of them are served. */
import { DataType as ConfigDataType } from '@paceline/protocol/model-config';
import type { DataType } from '@paceline/tensor';

const WIRE_NAMES: Readonly<Record<ConfigDataType, DataType | undefined>> = {
  [ConfigDataType.TYPE_INVALID]: undefined,
  [ConfigDataType.TYPE_BOOL]: 'BOOL',
  [ConfigDataType.TYPE_UINT8]: 'UINT8',
  [ConfigDataType.TYPE_UINT16]: 'UINT16',
  [ConfigDataType.TYPE_UINT32]: 'UINT32',
  [ConfigDataType.TYPE_UINT64]: 'UINT64',
  [ConfigDataType.TYPE_INT8]: 'INT8',
  [ConfigDataType.TYPE_INT16]: 'INT16',
  [ConfigDataType.TYPE_INT32]: 'INT32',
  [ConfigDataType.TYPE_INT64]: 'INT64',
  [ConfigDataType.TYPE_FP16]: 'FP16',
  [ConfigDataType.TYPE_FP32]: 'FP32',
  [ConfigDataType.TYPE_FP64]: 'FP64',
  [ConfigDataType.TYPE_STRING]: 'BYTES',
  [ConfigDataType.TYPE_BF16]: 'BF16',
};

const CONFIG_TYPES = new Map<DataType, ConfigDataType>();
for (const [key, name] of Object.entries(WIRE_NAMES)) if (name !== undefined) CONFIG_TYPES.set(name, Number(key));

/** `TYPE_FP32` → `FP32`, `TYPE_STRING` → `BYTES`; undefined for TYPE_INVALID and for numbers the enum does not have. */
export function wireDataType(type: ConfigDataType): DataType | undefined {
  return WIRE_NAMES[type];
}

/** `FP32` → `TYPE_FP32`. */
export function configDataType(name: DataType): ConfigDataType {
  return CONFIG_TYPES.get(name) ?? ConfigDataType.TYPE_INVALID;
}

/** The enum's name for messages: `TYPE_FP32`. */
export function configDataTypeName(type: ConfigDataType): string {
  return ConfigDataType[type] ?? `${type}`;
}

/** Whether the ONNX Runtime backend can take and give this type: everything but BF16. */
export function isServedDataType(name: DataType): boolean {
  return name !== 'BF16';
}
