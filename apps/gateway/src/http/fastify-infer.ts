/** Mounts the infer route on a Fastify instance, outside Fastify's own body parsing and reply machinery. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DEFAULT_DATA_PLANE_LIMITS } from './data-plane-limits.js';
import { InferRoute, type InferRouteOptions } from './infer-route.js';
import { serveNodeInfer } from './node-infer.js';

export interface InferRoutesOptions extends Omit<InferRouteOptions, 'maxInputBytes'> {
  /** Largest body in bytes; 64 MiB unless given. */
  readonly maxInputBytes?: number;
  /** Seconds without progress of a response that the client does not take; 30 unless given. */
  readonly stallTimeoutS?: number;
}

interface InferParams {
  readonly model: string;
  readonly version?: string;
}

const PATHS = ['/v2/models/:model/infer', '/v2/models/:model/versions/:version(^\\d+$)/infer'];

/** Routes: POST on both forms of the infer path. The connection's end cancels the request. */
export function registerInferRoutes(fastify: FastifyInstance, options: InferRoutesOptions): void {
  const { maxInputBytes, stallTimeoutS } = { ...DEFAULT_DATA_PLANE_LIMITS, ...options };
  const route = new InferRoute({ ...options, maxInputBytes });
  // A hijacked reply ends Fastify's part: no further hook or handler runs.
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { model, version = '' } = request.params as InferParams;
    // What hooks have set, for instance for other origins, would be lost with Fastify's reply.
    for (const [header, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(header, value);
    reply.hijack();
    serveNodeInfer(route, request.raw, reply.raw, model, version, {
      maxInputBytes,
      stallTimeoutS,
      ...(options.budget && { budget: options.budget }),
    });
  };
  for (const url of PATHS) {
    fastify.route<{ Params: InferParams }>({
      method: 'POST',
      url,
      // Before parsing: the body belongs to the route, whatever its content type says.
      onRequest: (request, reply) => serve(request, reply),
      handler: () => undefined,
    });
  }
}
