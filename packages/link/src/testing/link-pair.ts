/** A listening and a dialling end in one process, over a real socket and a proxy, with everything they report. */
import { systemClock, type Clock } from '@paceline/clock';
import { LinkClient } from '../link-client.js';
import type { LinkPeer } from '../link-peer.js';
import { LinkServer } from '../link-server.js';
import type { LinkListener, LinkOptions, LinkTls } from '../options.js';
import { ReceiveBudget } from '../receive-budget.js';
import { FaultyProxy } from './faulty-proxy.js';

export const SECRET = Buffer.from('the secret of this test');
export const GATEWAY = { role: 'gateway', id: 'aaaaaaaaaaaaaaaa' } as const;
export const WORKER = { role: 'worker', id: 'bbbbbbbbbbbbbbbb' } as const;

/** What one end has reported. */
export class Reports implements LinkListener {
  readonly ups: LinkPeer[] = [];
  readonly downs: string[] = [];
  readonly messages: { kind: number; body: Buffer }[] = [];
  readonly problems: string[] = [];
  /** Called with each message, beside its being kept. */
  hook: ((peer: LinkPeer, kind: number, body: Buffer) => void) | undefined;

  onUp(peer: LinkPeer): void {
    this.ups.push(peer);
  }

  onDown(_peer: LinkPeer, reason: string): void {
    this.downs.push(reason);
  }

  onMessage(peer: LinkPeer, kind: number, body: Buffer): void {
    this.messages.push({ kind, body });
    this.hook?.(peer, kind, body);
  }
}

export interface PairOptions {
  readonly clock?: Clock;
  readonly serverSecret?: Uint8Array | undefined;
  readonly clientSecret?: Uint8Array | undefined;
  readonly serverTls?: LinkTls;
  readonly clientTls?: LinkTls;
  readonly budgetBytes?: number;
  readonly outboxLimitBytes?: number;
}

export interface LinkPair {
  readonly server: LinkServer;
  readonly client: LinkClient;
  readonly atServer: Reports;
  readonly atClient: Reports;
  readonly proxy: FaultyProxy;
  readonly serverBudget: ReceiveBudget;
  /** The same process, dialling again as it does after a restart of its link. */
  redial(reports: Reports): LinkClient;
  close(): Promise<void>;
}

export async function linkPair(options: PairOptions = {}): Promise<LinkPair> {
  const atServer = new Reports();
  const atClient = new Reports();
  const serverBudget = new ReceiveBudget(options.budgetBytes ?? 1 << 30);
  const common = (reports: Reports): Pick<LinkOptions, 'clock' | 'protocol' | 'onProblem' | 'outboxLimitBytes'> => ({
    clock: options.clock ?? systemClock,
    protocol: 'test/1',
    onProblem: (text) => void reports.problems.push(text),
    ...(options.outboxLimitBytes === undefined ? {} : { outboxLimitBytes: options.outboxLimitBytes }),
  });
  const secretOf = (key: 'serverSecret' | 'clientSecret'): Uint8Array | undefined => (key in options ? options[key] : SECRET);
  const server = new LinkServer(
    {
      ...common(atServer),
      self: GATEWAY,
      secret: secretOf('serverSecret'),
      budget: serverBudget,
      ...(options.serverTls ? { tls: options.serverTls } : {}),
    },
    atServer,
  );
  const proxy = await FaultyProxy.to(await server.listen('127.0.0.1', 0));
  const dial = (reports: Reports): LinkClient =>
    new LinkClient(
      {
        ...common(reports),
        self: WORKER,
        secret: secretOf('clientSecret'),
        budget: new ReceiveBudget(1 << 30),
        address: proxy.address,
        expected: GATEWAY,
        ...(options.clientTls ? { tls: options.clientTls } : {}),
      },
      reports,
    );
  const clients = [dial(atClient)];
  return {
    server,
    client: clients[0]!,
    atServer,
    atClient,
    proxy,
    serverBudget,
    redial: (reports) => {
      const client = dial(reports);
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.close();
      await server.close();
      await proxy.close();
    },
  };
}
