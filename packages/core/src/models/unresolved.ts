/**
 * Why no model version answers for what a client asked: one wording, Triton's, for every catalog. To be asked only after
 * looking up found nothing, so that it costs the requests that are served nothing.
 */
import { ServingError } from '@paceline/protocol';

/** What a catalog knows of a model; undefined = it does not know the name. */
export interface KnownVersions {
  /** Whether there is any version, ready or not. */
  readonly any: boolean;
  /** Whether it knows the one that was asked for. */
  readonly asked: boolean;
}

/** Versions are folder names: positive decimal numbers of at most 19 digits. */
const VERSION = /^\d{1,19}$/;

/**
 * @param version "" = any
 * @returns INVALID_ARGUMENT for a malformed version, NOT_FOUND for an unknown model or version or where none is
 * available, UNAVAILABLE for a version that is not ready
 */
export function unresolvedModel(name: string, version: string, known: KnownVersions | undefined): ServingError {
  const latest = version === '';
  if (!latest && !VERSION.test(version)) return malformedVersion(version);
  const unknown = `Request for unknown model: '${name}'`;
  if (!known?.any) return new ServingError('NOT_FOUND', `${unknown} is not found`, { reason: 'unknown_model' });
  if (latest) return new ServingError('NOT_FOUND', `${unknown} has no available versions`, { reason: 'no_available_version' });
  if (!known.asked) return new ServingError('NOT_FOUND', `${unknown} version ${version} is not found`, { reason: 'unknown_version' });
  return new ServingError('UNAVAILABLE', `${unknown} version ${version} is not at ready state`, { reason: 'version_not_ready' });
}

function malformedVersion(version: string): ServingError {
  const text = /^-\d+$/.test(version)
    ? `invalid model version specified '${version}' , version should be an integral value > 0`
    : `failed to get model version from specified version string '${version}' (details: stol), version should be an integral value > 0`;
  return new ServingError('INVALID_ARGUMENT', text, { reason: 'malformed_version' });
}
