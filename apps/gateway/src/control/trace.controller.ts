/** The trace settings of Triton, which are not served: says so, instead of that there is no such path. */
import { Controller, Get, Post } from '@nestjs/common';
import { ServingError } from '@paceline/protocol';

@Controller('v2')
export class TraceController {
  @Get(['trace/setting', 'models/:name/trace/setting'])
  read(): never {
    return notServed();
  }

  @Post(['trace/setting', 'models/:name/trace/setting'])
  change(): never {
    return notServed();
  }
}

function notServed(): never {
  throw new ServingError(
    'UNIMPLEMENTED',
    'traces are not served by this server; the access log has the timings and trace id of each request',
    {
      reason: 'not_served',
    },
  );
}
