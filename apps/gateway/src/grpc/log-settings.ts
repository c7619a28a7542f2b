/** LogSettings of gRPC: the settings map of its messages, to and from the view that HTTP uses too. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { LogSettingsResponseSchema, type LogSettingsRequest, type LogSettingsResponse } from '@paceline/protocol/grpc';
import type { LogSettings } from '@paceline/telemetry';
import { changeLogSettings, logSettingsView } from '../control/views/log-settings.js';

const TYPE_NAMES = { boolean: 'boolean', 'unsigned-integer': 'int32', string: 'string' } as const;

type Setting = NonNullable<MessageInitShape<typeof LogSettingsResponseSchema>['settings']>[string];

function toSetting(value: boolean | number | string): Setting {
  if (typeof value === 'boolean') return { parameterChoice: { case: 'boolParam', value } };
  if (typeof value === 'number') return { parameterChoice: { case: 'uint32Param', value } };
  return { parameterChoice: { case: 'stringParam', value } };
}

/** Changes what the request names, nothing where it names nothing. @throws ServingError as {@link changeLogSettings} */
export function applyLogSettings(settings: LogSettings, request: LogSettingsRequest): LogSettingsResponse {
  const wanted = Object.fromEntries(
    Object.entries(request.settings).map(([name, { parameterChoice }]) => [name, parameterChoice.value ?? null]),
  );
  changeLogSettings(settings, wanted, (field, expected) => `expect ${TYPE_NAMES[expected]} for '${field}'`);
  const entries = Object.entries(logSettingsView(settings)).map(([name, value]) => [name, toSetting(value as boolean | number | string)]);
  return create(LogSettingsResponseSchema, { settings: Object.fromEntries(entries) as Record<string, Setting> });
}
