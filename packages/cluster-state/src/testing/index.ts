export { describeDesiredState } from './desired-state.contract.js';
export type { OpenStore, StoreHarness } from './harness.js';
export { describeLeases } from './leases.contract.js';
export { describeMembership } from './membership.contract.js';
