/**
 * Models of a cluster are loaded anew under load, also while a scheduler dies in the middle of it: no request fails, and
 * the call that asked for it ends, well or with a word that trying again makes sense.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ECHO, WIDE } from './cluster/questions.js';
import { MODELS, ShakenCluster } from './cluster/shaken-cluster.js';
import { Scrape } from './support/scrape.js';
import { until } from './support/until.js';

const SEED = 20_261_130;
const DEADLINE_MS = 20_000;
const LOADED_WITHIN_MS = 30_000;

describe('a cluster whose models are loaded anew', () => {
  let shaken: ShakenCluster;
  beforeAll(async () => {
    const flags = ['--model-control-mode=explicit', ...MODELS.map((model) => `--load-model=${model}`)];
    shaken = await ShakenCluster.start({ gateways: 2, schedulers: 2, workers: 2 }, { seed: SEED, deadlineMs: DEADLINE_MS }, flags);
  }, 90_000);
  afterAll(() => shaken?.end(), 60_000);

  /** Makes the files of a model say something else, so that loading it is more than a look. */
  function change(model: string, betaMs: number): void {
    const path = join(shaken.repository.root, model, 'config.pbtxt');
    const changed = readFileSync(path, 'utf8').replace(/(simulated_beta_ms" value \{ string_value: ")[^"]*/, `$1${betaMs}`);
    writeFileSync(path, changed);
  }

  async function control(gateway: number, model: string, operation: 'load' | 'unload'): Promise<{ status: number; text: string }> {
    const { http } = shaken.cluster.members('gateway')[gateway]!;
    const response = await fetch(`http://127.0.0.1:${http}/v2/repository/models/${model}/${operation}`, { method: 'POST' });
    return { status: response.status, text: await response.text() };
  }

  async function parameterOf(gateway: number, model: string): Promise<string | undefined> {
    const { http } = shaken.cluster.members('gateway')[gateway]!;
    const text = await (await fetch(`http://127.0.0.1:${http}/v2/models/${model}/config`)).text();
    return /"simulated_beta_ms":\{"string_value":"([^"]*)"/.exec(text.replace(/\s/g, ''))?.[1];
  }

  it('fails no request, and each gateway serves the new version of things when the call is answered', async () => {
    for (const [round, model] of [ECHO, WIDE, ECHO].entries()) {
      const beta = 0.1 + round / 10;
      change(model, beta);
      expect(await control(round % 2, model, 'load')).toEqual({ status: 200, text: '' });
      expect(await parameterOf(round % 2, model)).toBe(String(beta));
      await until('the other gateway has it, too', 2000, async () => (await parameterOf((round + 1) % 2, model)) === String(beta));
      await shaken.answers();
      expect(shaken.books.breaches).toEqual([]);
    }
  }, 90_000);

  it('fails no request when the scheduler that places models dies in the middle', async () => {
    const { books, cluster } = shaken;
    for (const round of [0, 1]) {
      const schedulers = cluster.members('scheduler');
      const placing = await Promise.all(
        schedulers.map(async ({ metrics }) => (await Scrape.of(`127.0.0.1:${metrics}`)).sum('paceline_placement_owned')),
      );
      const owner = schedulers[placing.indexOf(1)]!;
      const beta = 0.7 + round / 10;
      change(ECHO, beta);
      const first = control(round, ECHO, 'load');
      process.kill(owner.pid, 'SIGKILL');
      // Sent again to whoever places models then; where that was too late, the client asks again.
      expect([200, 503]).toContain((await first).status);
      await until('it is loaded', LOADED_WITHIN_MS, async () => (await control(round, ECHO, 'load')).status === 200);
      expect(await parameterOf(round, ECHO)).toBe(String(beta));
      await cluster.replaced(owner);
      await shaken.well();
      expect(books.breaches).toEqual([]);
    }
  }, 120_000);
});
