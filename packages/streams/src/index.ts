export type { ReplyChannel, RequestIntake, RequestQueue } from './ports.js';
export type { GatewayLinkListener, GatewayLinks, SchedulerLinkListener, SchedulerLinks, WorkerLinks } from './link/ports.js';
export { InMemoryStreams } from './in-memory.js';
export { createGatewayLinks } from './link/gateway-links.js';
export type { LinkSetup } from './link/link-setup.js';
export { createSchedulerLinks } from './link/scheduler-links.js';
export { createWorkerLinks, type WorkerLinkSetup } from './link/worker-links.js';
export { RedisRequestQueue, type RedisRequestQueueOptions, type RequestQueueCounters } from './redis/redis-request-queue.js';
export { PartitionReader, type PartitionReaderCounters, type PartitionReaderOptions } from './redis/partition-reader.js';
