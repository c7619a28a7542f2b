export { channelCredentialsOf, serverCredentialsOf } from './credentials.js';
export { connectGrpcWorker, type GrpcWorkerOptions } from './client.js';
export type { PeerIdentity } from './peer-stream.js';
export { serveScheduler, type ServedConnection, type ServedPorts } from './server.js';
export { channelOptions, CONNECT_METHOD, WORKER_PACKAGE, WORKER_SERVICE, workerPackageDefinition, workerService } from './service.js';
