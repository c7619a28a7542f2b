// Loaded into the server by start.mjs: when the launcher is gone for good (even by SIGKILL) the pipe on standard input
// ends, and the server drains as if it had got SIGTERM. Child processes and threads inherit the option that loads this
// file; they have another parent and are left alone.
import { isMainThread } from 'node:worker_threads';

if (isMainThread && process.env.PACELINE_LAUNCHER_PID === String(process.ppid)) {
  process.stdin.once('close', () => process.kill(process.pid, 'SIGTERM'));
  process.stdin.resume();
  process.stdin.unref?.();
}
