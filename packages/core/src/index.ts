export * from './request/index.js';
