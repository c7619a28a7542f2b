export type { ReplyChannel, RequestIntake, RequestQueue } from './ports.js';
export type {
  GatewayLinkListener,
  GatewayLinks,
  SchedulerLinkListener,
  SchedulerLinks,
  WorkerLinks,
} from './link/ports.js';
export { InMemoryStreams } from './in-memory.js';
