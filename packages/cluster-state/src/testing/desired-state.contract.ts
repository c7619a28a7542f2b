/** What every adapter of {@link DesiredState} promises. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DesiredState } from '../ports.js';
import type { OpenStore, StoreHarness } from './harness.js';

export function describeDesiredState(name: string, open: OpenStore<DesiredState>): void {
  describe(`desired state contract: ${name}`, () => {
    let store: StoreHarness<DesiredState>;
    let one: DesiredState;
    let other: DesiredState;

    beforeEach(async () => {
      store = await open();
      one = store.connect();
      other = store.connect();
    });

    afterEach(() => store.close());

    test('nothing is known at first', async () => {
      expect(await one.read()).toEqual({ fresh: true, models: [] });
    });

    test('what one writes the other reads, names and texts of any kind included', async () => {
      const loaded = { model: 'a b:"ü"', wanted: true, config: '{"max_batch_size": 4, "x": "\u0000\n"}' };
      const uploaded = { model: 'u', wanted: true, config: '{}', root: '/uploads/paceline-model-1' };
      const unloaded = { model: 'm', wanted: false, config: undefined };
      await one.write(loaded);
      await one.write(unloaded);
      await one.write(uploaded);
      const { fresh, models } = await other.read();
      expect(fresh).toBe(false);
      expect([...models].sort((x, y) => (x.model < y.model ? -1 : 1))).toEqual([loaded, unloaded, uploaded]);
    });

    test('the last word on a model counts, whole', async () => {
      await one.write({ model: 'm', wanted: true, config: '{}' });
      await other.write({ model: 'm', wanted: false, config: undefined });
      await one.write({ model: 'm', wanted: true, config: undefined });
      expect(await other.read()).toEqual({ fresh: false, models: [{ model: 'm', wanted: true, config: undefined }] });
    });
  });
}
