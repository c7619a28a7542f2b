/**
 * Puts the access policy in front of every route of the HTTP application: one hook before anything of a body is read, one
 * behind the answer for the audit. What a route is comes from its pattern, and names come decoded from the router, so that
 * no spelling of a path leads round the check.
 */
import type { IncomingMessage } from 'node:http';
import { ServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ManagementCaller } from '../control/management-access.js';
import type { AccessPolicy } from './access-policy.js';
import { actionOfRoute, type Action } from './actions.js';
import { writeAudit } from './audit.js';
import { ANONYMOUS, type Grant } from './grant.js';

const grants = new WeakMap<IncomingMessage, Grant>();

/** What the hook granted to a request that has passed it. */
export function grantOf(request: IncomingMessage): Grant {
  return grants.get(request) ?? ANONYMOUS;
}

export function singleHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.join(', ');
}

export function managementCaller({ raw, headers }: FastifyRequest): ManagementCaller {
  return {
    remoteAddress: raw.socket.remoteAddress,
    host: headers.host,
    origin: headers.origin,
    headerNames: Object.keys(headers),
  };
}

/** Call it before routes are added. */
export function guardRoutes(fastify: FastifyInstance, access: AccessPolicy, logger: Logger): void {
  fastify.addHook('onRequest', async (request, reply) => {
    // A path without a route says so to everybody, and a browser asks by OPTIONS before it sends a key.
    if (request.is404 || (request.method === 'OPTIONS' && access.corsOrigins.length > 0)) return;
    try {
      admit(request, access);
    } catch (error) {
      if (error instanceof ServingError && error.code === 'UNAUTHENTICATED') void reply.header('www-authenticate', 'Bearer');
      // The body stays unread, so the connection cannot be used again.
      if (hasBody(request)) void reply.header('connection', 'close');
      throw error;
    }
  });
  fastify.addHook('onResponse', async (request, reply) => {
    const action = actionOf(request);
    if (action?.manages) auditRequest(logger, action, request, reply);
  });
}

function admit(request: FastifyRequest, access: AccessPolicy): void {
  const action = actionOf(request);
  const grant = access.authorize('http', action, (name) => singleHeader(request.headers[name]));
  grants.set(request.raw, grant);
  const model = modelOf(request);
  if (model !== undefined) grant.requireModel(model);
  if (action?.manages) access.requireManagement(grant, managementCaller(request));
}

function actionOf(request: FastifyRequest): Action | undefined {
  const pattern = request.routeOptions.url;
  return pattern === undefined ? undefined : actionOfRoute(request.method, pattern);
}

/** The model that the path names; undefined where it names none. */
function modelOf(request: FastifyRequest): string | undefined {
  const parameter = /\/models\/:(\w+)/.exec(request.routeOptions.url ?? '')?.[1];
  return parameter === undefined ? undefined : (request.params as Readonly<Record<string, string>>)[parameter];
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function auditRequest(logger: Logger, action: Action, request: FastifyRequest, { statusCode }: FastifyReply): void {
  writeAudit(logger, {
    action: action.name,
    who: grantOf(request.raw).who,
    peer: request.raw.socket.remoteAddress ?? request.ip,
    target: modelOf(request) ?? '',
    outcome: statusCode < 400 ? 'ok' : statusCode === 401 || statusCode === 403 || statusCode === 429 ? 'refused' : 'failed',
    detail: String(statusCode),
  });
}
