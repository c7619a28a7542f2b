export type { LaneHost, LaneSpec } from './placement/lane-host.js';
