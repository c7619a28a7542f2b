/** The desired state of models in Redis: one hash, a field a model. */
import { RedisScript, type RedisConnection, type RedisKeys } from '@paceline/redis';
import type { DesiredModel, DesiredState } from '../ports.js';
import { parseRecord, unexpectedReply } from './reply.js';

const WRITE = new RedisScript(`return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])`);

export class RedisDesiredState implements DesiredState {
  constructor(
    private readonly connection: RedisConnection,
    private readonly keys: RedisKeys,
  ) {}

  async read(): Promise<{ readonly fresh: boolean; readonly models: readonly DesiredModel[] }> {
    const reply = await this.connection.command('HGETALL', this.keys.desired);
    if (!Array.isArray(reply)) throw unexpectedReply('desired models', reply);
    const fields = reply.map(String);
    const models: DesiredModel[] = [];
    for (let index = 0; index < fields.length; index += 2) models.push(parseModel(fields[index] ?? '', fields[index + 1] ?? ''));
    return { fresh: models.length === 0, models };
  }

  async write({ model, wanted, config, root }: DesiredModel): Promise<void> {
    await this.connection.run(WRITE, [this.keys.desired], [model, JSON.stringify({ wanted, config, root })]);
  }
}

function parseModel(model: string, text: string): DesiredModel {
  const { wanted, config, root } = parseRecord(text) ?? {};
  if (typeof wanted !== 'boolean' || (config !== undefined && typeof config !== 'string'))
    throw unexpectedReply(`desired model ${model}`, text);
  return { model, wanted, config, ...(typeof root === 'string' && { root }) };
}
