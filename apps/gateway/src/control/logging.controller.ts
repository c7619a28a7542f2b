/** Settings of the server's log while it runs: Triton's, and the levels of single modules. */
import { Body, Controller, Get, HttpCode, Inject, Post } from '@nestjs/common';
import type { LogSettings } from '@paceline/telemetry';
import { objectMember, readJsonBody } from './json-body.js';
import { LOG_SETTINGS } from './tokens.js';
import {
  changeLogModules,
  changeLogSettings,
  logModulesView,
  logSettingsView,
  type LogModulesView,
  type LogSettingsView,
} from './views/log-settings.js';

@Controller('v2/logging')
export class LoggingController {
  constructor(@Inject(LOG_SETTINGS) private readonly settings: LogSettings) {}

  @Get()
  read(): LogSettingsView {
    return logSettingsView(this.settings);
  }

  @Post()
  @HttpCode(200)
  change(@Body() body: unknown): LogSettingsView {
    const badType = (field: string, expected: string): string => `attempt to access JSON non-${expected} as ${expected} for '${field}'`;
    changeLogSettings(this.settings, readJsonBody(body), badType);
    return logSettingsView(this.settings);
  }

  @Get('modules')
  readModules(): LogModulesView {
    return logModulesView(this.settings);
  }

  @Post('modules')
  @HttpCode(200)
  changeModules(@Body() body: unknown): LogModulesView {
    changeLogModules(this.settings, objectMember(readJsonBody(body), 'modules'));
    return logModulesView(this.settings);
  }
}
