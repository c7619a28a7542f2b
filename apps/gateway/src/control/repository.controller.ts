/** The model repository: its index, and loading and unloading where the control mode allows it. */
import { Body, Controller, HttpCode, Inject, Param, Post, Req, Res } from '@nestjs/common';
import type { ModelControl, ModelIndexEntry } from '@paceline/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { grantOf } from '../access/http-access.js';
import { booleanMember, objectMember, readJsonBody } from './json-body.js';
import { jsonLoadValues, readLoadParameters } from './load-parameters.js';
import { MODEL_CONTROL } from './tokens.js';

@Controller('v2/repository')
export class RepositoryController {
  constructor(@Inject(MODEL_CONTROL) private readonly control: ModelControl) {}

  @Post('index')
  @HttpCode(200)
  index(@Body() body: unknown, @Req() request: FastifyRequest): readonly ModelIndexEntry[] {
    const grant = grantOf(request.raw);
    return this.control.index(booleanMember(readJsonBody(body), 'ready')).filter(({ name }) => grant.mayUse(name));
  }

  @Post('models/:name/load')
  async load(@Param('name') name: string, @Body() body: unknown, @Res() reply: FastifyReply): Promise<void> {
    const parameters = objectMember(readJsonBody(body), 'parameters');
    await this.control.load(name, readLoadParameters(Object.entries(parameters), jsonLoadValues));
    empty(reply);
  }

  @Post('models/:name/unload')
  async unload(@Param('name') name: string, @Body() body: unknown, @Res() reply: FastifyReply): Promise<void> {
    const parameters = objectMember(readJsonBody(body), 'parameters');
    await this.control.unload(name, { unloadDependents: booleanMember(parameters, 'unload_dependents') });
    empty(reply);
  }
}

function empty(reply: FastifyReply): void {
  void reply.code(200).type('application/json').send('');
}
