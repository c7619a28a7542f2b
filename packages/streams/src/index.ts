export type { ReplyChannel, RequestIntake, RequestQueue } from './ports.js';
export { InMemoryStreams } from './in-memory.js';
