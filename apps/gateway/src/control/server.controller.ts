/** GET /v2: name, version and extensions of the server. */
import { Controller, Get, Inject } from '@nestjs/common';
import type { ServerInfo } from './gateway.options.js';
import { SERVER_INFO } from './tokens.js';

@Controller()
export class ServerController {
  constructor(@Inject(SERVER_INFO) private readonly info: ServerInfo) {}

  @Get('v2')
  metadata(): { name: string; version: string; extensions: readonly string[] } {
    const { name, version, extensions } = this.info;
    return { name, version, extensions };
  }
}
