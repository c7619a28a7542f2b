export { formatAddress, isLoopback, parseAddress, requireSecret, type HostPort } from './address.js';
export { FrameError } from './frames.js';
export {
  Handshake,
  HandshakeError,
  HANDSHAKE_MESSAGE_MAX_BYTES,
  randomId,
  refusal,
  type HandshakeOptions,
  type LinkIdentity,
} from './handshake.js';
export { LinkClient, type LinkClientOptions } from './link-client.js';
export type { LinkPeer, SendOptions } from './link-peer.js';
export { LinkServer } from './link-server.js';
export type { LinkListener, LinkOptions, LinkTls } from './options.js';
export { ReceiveBudget } from './receive-budget.js';
