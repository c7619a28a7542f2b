/** Sends Nest's own messages to the server's logger; its start-up chatter is debug. */
import type { LoggerService } from '@nestjs/common';
import type { Logger } from '@paceline/telemetry';

export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, context?: string): void {
    this.logger.debug({ context }, String(message));
  }

  warn(message: unknown, context?: string): void {
    this.logger.warn({ context }, String(message));
  }

  error(message: unknown, ...details: unknown[]): void {
    this.logger.error({ details }, String(message));
  }
}
