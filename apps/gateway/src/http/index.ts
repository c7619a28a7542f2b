export { createHttpDataPlane, type HttpDataPlane, type HttpDataPlaneOptions } from './data-plane.js';
export { DEFAULT_DATA_PLANE_LIMITS, type DataPlaneLimits } from './data-plane-limits.js';
export { registerInferRoutes, type InferRoutesOptions } from './fastify-infer.js';
export { InferRoute, type InferHttpRequest, type InferRouteOptions, type JsonOffload } from './infer-route.js';
export type { HttpReply } from './infer-reply.js';
export { PiscinaJsonOffload, type JsonOffloadOptions } from './json-offload.js';
