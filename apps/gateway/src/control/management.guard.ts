/** Lets only local, direct callers reach routes that change what is served. */
import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { requireManagementAccess } from './management-access.js';

@Injectable()
export class ManagementGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    requireManagementAccess({
      remoteAddress: request.raw.socket.remoteAddress,
      host: request.headers.host,
      headerNames: Object.keys(request.headers),
    });
    return true;
  }
}
