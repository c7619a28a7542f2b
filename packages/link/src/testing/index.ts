export { FaultyProxy } from './faulty-proxy.js';
export { until } from './until.js';
