/**
 * The HTTP port: bare sockets that serve canonical inference requests themselves and give every other connection to an
 * ordinary node:http server, which never listens. Invariant: each accepted socket is known here until it closes, so that
 * closing leaves none behind.
 */
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Clock, Timer } from '@paceline/clock';
import { systemClock } from '@paceline/clock';
import { toServingError, type ModelCatalog, type ServingError } from '@paceline/protocol';
import type { Logger, StatisticsRegistry } from '@paceline/telemetry';
import type { AccessLog } from '../access-log/access-log.js';
import type { AccessPolicy } from '../access/access-policy.js';
import { INFER } from '../access/actions.js';
import type { Grant } from '../access/grant.js';
import type { TlsSource } from '../access/tls-files.js';
import { ByteBudget } from '../infer/byte-budget.js';
import type { InferHandler } from '../infer/infer-service.js';
import { BodyPool } from './body-pool.js';
import { Connection } from './connection.js';
import type { ConnectionHost } from './connection-host.js';
import { DEFAULT_DATA_PLANE_LIMITS, type DataPlaneLimits } from './data-plane-limits.js';
import { FallbackDrain } from './fallback-drain.js';
import { InferRoute, type JsonOffload } from './infer-route.js';
import { createListener } from './listener.js';
import { afterReading } from './reply-stream.js';
import type { InferHead } from './request-head.js';

export interface HttpDataPlaneOptions {
  readonly inferHandler: InferHandler;
  readonly catalog: ModelCatalog;
  /** Serves everything that is not a canonical inference request; must not listen itself. */
  readonly fallbackServer: HttpServer;
  readonly logger: Logger;
  readonly limits?: Partial<DataPlaneLimits>;
  readonly clock?: Clock;
  /** For the time that clients grant: the clock of the infer handler. `clock` without it. */
  readonly routeClock?: Clock;
  /** Decodes large JSON bodies off the main thread. */
  readonly offload?: JsonOffload;
  /** Who may infer; everybody without it. */
  readonly access?: AccessPolicy;
  /** Where refusals are counted. */
  readonly statistics?: StatisticsRegistry;
  readonly accessLog?: AccessLog;
  /** Requests have spans. */
  readonly traced?: boolean;
  /** Memory for bodies, shared with other protocols; one of its own without it. */
  readonly budget?: ByteBudget;
  /** Most that a body may grow by when it is inflated; 0 or absent = any factor. */
  readonly maxDecompressionRatio?: number;
  /** Certificates of the port; without them it speaks plain HTTP. */
  readonly tls?: TlsSource;
}

export interface HttpDataPlane {
  readonly server: Server;
  /** Open connections, those handed over included. */
  readonly connectionCount: number;
  /** Large bodies that are being read or answered, in bytes. */
  readonly bufferedBytes: number;
  /** @throws the listen error, e.g. EADDRINUSE. */
  listen(host: string, port: number): Promise<AddressInfo>;
  /** From now on each connection ends with the reply behind which nothing more has come; idle ones stay open. */
  beginDrain(): void;
  /**
   * Stops accepting, ends idle connections now and busy ones with their last reply; what is left after `graceMs` is cut.
   * @returns once every socket has closed, the number of those that were cut with a request or its reply under way
   */
  close(graceMs?: number): Promise<number>;
}

const TICK_US = 1_000_000;
/** How long a connection that has just been made has for its first request when everything closes. */
const NEWCOMERS_MS = 250;
const NO_NAMES: ReadonlySet<string> = new Set();

class SocketDataPlane implements HttpDataPlane, ConnectionHost {
  readonly server: Server;
  readonly limits: DataPlaneLimits;
  readonly route: InferRoute;
  readonly credentialNames: ReadonlySet<string>;
  readonly #access: AccessPolicy | undefined;
  readonly #clock: Clock;
  readonly #fallback: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<Connection>();
  readonly budget: ByteBudget;
  readonly bodies = new BodyPool();
  /** Connections that node:http has taken over end like the others. */
  readonly #behind: FallbackDrain;
  #accepted = 0;
  #ending = false;
  #onEmpty: (() => void) | undefined;
  #timer: Timer | undefined;
  tick = 0;
  dateLine = '';
  closing = false;

  constructor(options: HttpDataPlaneOptions) {
    this.limits = { ...DEFAULT_DATA_PLANE_LIMITS, ...options.limits };
    this.#clock = options.clock ?? systemClock;
    this.#fallback = options.fallbackServer;
    this.budget = options.budget ?? new ByteBudget(this.limits.maxBufferedBytes, this.#clock);
    this.route = new InferRoute({
      ...options,
      budget: this.budget,
      clock: options.routeClock ?? this.#clock,
      maxInputBytes: this.limits.maxInputBytes,
    });
    this.#behind = new FallbackDrain(this.#fallback);
    this.#access = options.access?.isOpen('http') === false ? options.access : undefined;
    this.credentialNames = this.#access?.httpHeaders ?? NO_NAMES;
    this.server = createListener(options.tls, this.limits.headerTimeoutS, {
      onSocket: (socket) => this.#accept(socket),
      onReady: (socket) => this.#serve(socket),
    });
    this.server.maxConnections = this.limits.maxConnections;
  }

  get connectionCount(): number {
    return this.#sockets.size;
  }

  get bufferedBytes(): number {
    return this.budget.usedBytes;
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host, port, backlog: 1024 }, () => {
        this.server.off('error', reject);
        resolve();
      });
    });
    // node:http starts to enforce its header and request timeouts when its server begins to listen; this one never does.
    this.#fallback.emit('listening');
    this.#onTick();
    return this.server.address() as AddressInfo;
  }

  beginDrain(): void {
    this.closing = true;
    this.#behind.begin();
  }

  async close(graceMs = 5000): Promise<number> {
    this.beginDrain();
    this.#ending = true;
    await this.#backlogTaken(graceMs);
    const stopped = new Promise<void>((resolve) => this.server.close(() => resolve()));
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    if (this.#sockets.size === 0) this.#onEmpty?.();
    for (const connection of this.#connections) if (!connection.isNew) connection.shutDown();
    this.#fallback.closeIdleConnections();
    const newcomers = this.#clock.setTimer(Math.min(NEWCOMERS_MS, graceMs) * 1000, () => {
      for (const connection of this.#connections) connection.shutDown();
    });
    let dropped = 0;
    const cut = this.#clock.setTimer(graceMs * 1000, () => {
      // Idle connections have been ended: what node:http still has is busy.
      dropped = this.#sockets.size - this.#connections.size;
      for (const connection of this.#connections) if (connection.busy) dropped += 1;
      for (const socket of this.#sockets) socket.destroy();
    });
    await stopped;
    await emptied;
    cut.cancel();
    newcomers.cancel();
    this.#timer?.cancel();
    this.#timer = undefined;
    return dropped;
  }

  admit(head: InferHead): Grant | ServingError | undefined {
    const access = this.#access;
    if (access === undefined) return undefined;
    try {
      const grant = access.authorize('http', INFER, (name) => head.credentials[name]);
      grant.requireModel(head.model);
      return grant;
    } catch (error) {
      return toServingError(error);
    }
  }

  handOver(socket: Socket, head: Buffer): void {
    // Paused, so that no byte overtakes those put back; node:http listens before the flow goes on.
    socket.pause();
    if (head.length > 0) socket.unshift(head);
    this.#fallback.emit('connection', socket);
    socket.resume();
  }

  /**
   * The system takes connections before this process sees them, and closing the port resets those: resolves after a turn
   * of the event loop that brought none. What comes between that turn and the close is lost, as with any server.
   */
  async #backlogTaken(graceMs: number): Promise<void> {
    const untilUs = this.#clock.nowUs() + Math.min(NEWCOMERS_MS, graceMs) * 1000;
    let before: number;
    do {
      before = this.#accepted;
      await new Promise<void>((resolve) => afterReading(resolve));
    } while (this.#accepted > before && this.#clock.nowUs() < untilUs);
  }

  #accept(socket: Socket): void {
    this.#accepted += 1;
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
    // While a handshake runs nobody else listens; 'close' follows.
    socket.on('error', () => undefined);
  }

  #serve(socket: Socket): void {
    this.#connections.add(new Connection(socket, this, (connection) => this.#connections.delete(connection)));
  }

  #onTick(): void {
    this.tick += 1;
    this.dateLine = `Date: ${new Date(this.#clock.wallMs()).toUTCString()}\r\n`;
    for (const connection of this.#connections) connection.checkTimeouts();
    if (this.#ending) this.#fallback.closeIdleConnections();
    if (this.#connections.size === 0) this.bodies.clear();
    this.#timer = this.#clock.setTimer(TICK_US, () => this.#onTick());
  }
}

/** Nothing listens before {@link HttpDataPlane.listen}. */
export function createHttpDataPlane(options: HttpDataPlaneOptions): HttpDataPlane {
  return new SocketDataPlane(options);
}
