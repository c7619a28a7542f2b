/** For tests: the control routes over a model that is there or not as the test says, called as a client on this machine calls them. */
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ServingError, type LoadParameter } from '@paceline/protocol';
import { createLog, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import { createGatewayApp } from '../control/gateway.app.js';
import { SERVED_EXTENSIONS, type GatewayOptions } from '../control/gateway.options.js';
import { catalogOf, fakeModel } from './fake-lane.js';

const add = fakeModel({
  name: 'add_sub',
  inputs: [
    ['INPUT0', 'INT32', [-1, 16]],
    ['INPUT1', 'INT32', [-1, 16]],
  ],
});
const LOCAL = { remoteAddress: '127.0.0.1', headers: { host: 'localhost:8000' } };
const INDEX = [{ name: 'add_sub', version: '1', state: 'READY' as const }, { name: 'never_loaded' }];

export interface ControlReply {
  readonly status: number;
  readonly body: string;
  readonly headers: Record<string, unknown>;
}

export interface ControlCall {
  readonly payload?: string;
  readonly headers?: Record<string, string>;
  readonly remoteAddress?: string;
}

export class ControlRig {
  ready = true;
  healthy = true;
  readonly statistics = new StatisticsRegistry();
  readonly logSettings = createLog({ ...SILENT, info: true, warning: true, error: true }).settings;
  readonly loads: [string, Readonly<Record<string, LoadParameter>>][] = [];
  readonly unloads: [string, boolean][] = [];
  app: NestFastifyApplication;

  static async start(): Promise<ControlRig> {
    const rig = new ControlRig();
    rig.app = await createGatewayApp(rig.options());
    return rig;
  }

  stop(): Promise<void> {
    return this.app.close();
  }

  options(): GatewayOptions {
    return {
      catalog: { ...catalogOf(add), isHealthy: () => this.healthy },
      control: {
        index: (readyOnly) => (readyOnly ? INDEX.slice(0, 1) : INDEX),
        load: async (name, parameters) => {
          if (name === 'forbidden')
            throw new ServingError('UNAVAILABLE', 'explicit model load / unload is not allowed if polling is enabled');
          if (name === 'buggy') throw new Error('a secret');
          this.loads.push([name, parameters]);
        },
        unload: async (name, { unloadDependents }) => void this.unloads.push([name, unloadDependents]),
      },
      statistics: this.statistics,
      inferHandler: {
        infer: () => {
          throw new Error('not used');
        },
      },
      info: { name: 'paceline', version: '1.2.3', extensions: SERVED_EXTENSIONS, isLive: () => true, isReady: () => this.ready },
      limits: { maxRequestBytes: 1000 },
      logger: createLog(SILENT).logger,
      logSettings: this.logSettings,
    };
  }

  async call(method: 'GET' | 'POST' | 'DELETE' | 'HEAD' | 'OPTIONS', url: string, more: ControlCall = {}): Promise<ControlReply> {
    const reply = await this.app.inject({ method, url, ...LOCAL, ...more, headers: { ...LOCAL.headers, ...more.headers } });
    return { status: reply.statusCode, body: reply.body, headers: reply.headers };
  }
}
