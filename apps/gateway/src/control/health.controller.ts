/** GET /v2/health/live and /ready: an empty 200, or an empty 400 as Triton answers while it is not. */
import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { ServerInfo } from './gateway.options.js';
import { SERVER_INFO } from './tokens.js';

@Controller('v2/health')
export class HealthController {
  constructor(@Inject(SERVER_INFO) private readonly info: ServerInfo) {}

  @Get('live')
  live(@Res() reply: FastifyReply): void {
    answer(reply, this.info.isLive());
  }

  @Get('ready')
  ready(@Res() reply: FastifyReply): void {
    answer(reply, this.info.isReady());
  }
}

function answer(reply: FastifyReply, good: boolean): void {
  void reply
    .code(good ? 200 : 400)
    .type('text/plain')
    .send('');
}
