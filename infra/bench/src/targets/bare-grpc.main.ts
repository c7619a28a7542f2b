/** What a unary call costs grpc-js without any inference: answers each ModelInfer with the bytes of its request. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { MODEL_INFER_PATH } from '../requests/grpc-request.js';

const asIs = (bytes: Buffer): Buffer => bytes;
const server = new Server();
server.addService(
  {
    ModelInfer: {
      path: MODEL_INFER_PATH,
      requestStream: false,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  },
  {
    ModelInfer: (call: { readonly request: Buffer }, answer: (error: null, bytes: Buffer) => void) => {
      answer(null, call.request);
    },
  },
);
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.send?.(port);
});
process.on('disconnect', () => process.exit(0));
