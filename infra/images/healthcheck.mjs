// The health check of the images: 0 where the server says that it is ready, else 1 with what it said instead.
const url = process.env.PACELINE_HEALTH_URL ?? 'http://127.0.0.1:8000/v2/health/ready';
try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4000) });
  if (!answer.ok) throw new Error(`status ${answer.status} ${await answer.text()}`);
} catch (error) {
  console.error(`${url}: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
