/** Listeners of the links that keep what they are told. */
import type { GatewayMessage, ReplyFrame, SchedulerMessage, ServingError } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { GatewayLinkListener, SchedulerLinkListener } from '../link/ports.js';

/** Everything that one gateway is told. */
export class GatewayReports implements GatewayLinkListener {
  readonly frames: [number, ReplyFrame][] = [];
  readonly lost: [number, number, boolean, ServingError][] = [];
  readonly told: [string, SchedulerMessage][] = [];
  readonly ups: string[] = [];
  readonly downs: string[] = [];
  readonly tensors = new Map<number, readonly Tensor[]>();
  asked = 0;

  onFrame(number: number, frame: ReplyFrame): void {
    this.frames.push([number, frame]);
  }

  onLost(number: number, attempt: number, started: boolean, error: ServingError): void {
    this.lost.push([number, attempt, started, error]);
  }

  tensorsOf(number: number): readonly Tensor[] | undefined {
    this.asked++;
    return this.tensors.get(number);
  }

  onSchedulerUp(scheduler: string): void {
    this.ups.push(scheduler);
  }

  onSchedulerDown(scheduler: string): void {
    this.downs.push(scheduler);
  }

  onSchedulerMessage(scheduler: string, message: SchedulerMessage): void {
    this.told.push([scheduler, message]);
  }
}

/** Everything that one scheduler is told. */
export class SchedulerReports implements SchedulerLinkListener {
  readonly ups: string[] = [];
  readonly downs: string[] = [];
  readonly told: [string, GatewayMessage][] = [];

  onGatewayUp(gateway: string): void {
    this.ups.push(gateway);
  }

  onGatewayDown(gateway: string): void {
    this.downs.push(gateway);
  }

  onGatewayMessage(gateway: string, message: GatewayMessage): void {
    this.told.push([gateway, message]);
  }
}
