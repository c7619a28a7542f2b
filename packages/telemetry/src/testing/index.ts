export { RecordedTracing, type RecordedSpan } from './recorded-tracing.js';
