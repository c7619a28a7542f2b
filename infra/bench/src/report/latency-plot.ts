/** Latency against rate as an SVG: per model one full line (p50) and one dashed (p99), latency on a logarithmic axis. */
import type { RatePoint } from '../scenarios/scenario.js';
import { linearAxis, logAxis, type Axis } from './axis.js';

const WIDTH = 860;
const HEIGHT = 500;
const FRAME = { left: 80, right: WIDTH - 30, top: 60, bottom: HEIGHT - 90 };
/** Told apart in print and by the colour-blind as well. */
const COLOURS = ['#0b6bcb', '#d1600a', '#2f855a', '#7b3fa0'];
const LINES = [
  { name: 'p50', pick: (point: RatePoint): number => point.latency.p50Ms, dash: '' },
  { name: 'p99', pick: (point: RatePoint): number => point.latency.p99Ms, dash: ' stroke-dasharray="7 5"' },
];

const escapeText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function label(x: number, y: number, text: string, extra = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${extra}>${escapeText(text)}</text>`;
}

function grid(rate: Axis, latency: Axis): string[] {
  const vertical = rate.ticks.map((tick) => {
    const x = rate.toPixel(tick).toFixed(1);
    return (
      `<line x1="${x}" y1="${FRAME.top}" x2="${x}" y2="${FRAME.bottom}" stroke="#e3e6ea"/>` +
      label(Number(x), FRAME.bottom + 20, String(tick), 'text-anchor="middle"')
    );
  });
  const horizontal = latency.ticks.map((tick) => {
    const y = latency.toPixel(tick).toFixed(1);
    return (
      `<line x1="${FRAME.left}" y1="${y}" x2="${FRAME.right}" y2="${y}" stroke="#e3e6ea"/>` +
      label(FRAME.left - 10, Number(y) + 4, String(tick), 'text-anchor="end"')
    );
  });
  return [...vertical, ...horizontal];
}

function curves(points: readonly RatePoint[], colour: string, rate: Axis, latency: Axis): string[] {
  return LINES.flatMap(({ pick, dash }) => {
    const places = points.map((point) => [rate.toPixel(point.offeredPerS), latency.toPixel(pick(point))] as const);
    const path = places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
    const dots = places.map(([x, y]) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3.5" fill="${colour}"/>`);
    return [`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`, ...dots];
  });
}

function legend(names: readonly string[]): string[] {
  return names.flatMap((name, i) =>
    LINES.flatMap((line, j) => {
      const x = FRAME.left + (i * LINES.length + j) * 190;
      const y = HEIGHT - 18;
      const stroke = COLOURS[i % COLOURS.length];
      return [
        `<line x1="${x}" y1="${y - 4}" x2="${x + 34}" y2="${y - 4}" stroke="${stroke}" stroke-width="2"${line.dash}/>`,
        label(x + 42, y, `${name} ${line.name}`),
      ];
    }),
  );
}

/** @returns a complete SVG document; points whose latency is not a number are left out. */
export function latencyPlot(points: readonly RatePoint[], title: string): string {
  const sound = points.filter((point) => LINES.every(({ pick }) => pick(point) > 0));
  const values = sound.flatMap((point) => LINES.map(({ pick }) => pick(point)));
  const rate = linearAxis(Math.max(1, ...sound.map((point) => point.offeredPerS)), FRAME.left, FRAME.right);
  const latency = logAxis(Math.min(1, ...values), Math.max(2, ...values), FRAME.bottom, FRAME.top);
  const bySeries = Map.groupBy(sound, (point) => point.series);
  const drawn = [...bySeries.values()].flatMap((series, i) => curves(series, COLOURS[i % COLOURS.length] ?? '#000', rate, latency));
  const middleY = (FRAME.top + FRAME.bottom) / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13" fill="#23272e">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    label(FRAME.left, 32, title, 'font-size="16" font-weight="bold"'),
    ...grid(rate, latency),
    ...drawn,
    label((FRAME.left + FRAME.right) / 2, FRAME.bottom + 46, 'offered requests per second (Poisson)', 'text-anchor="middle"'),
    label(24, middleY, 'latency from the intended send time, ms', `text-anchor="middle" transform="rotate(-90 24 ${middleY})"`),
    ...legend([...bySeries.keys()]),
    '</svg>',
    '',
  ].join('\n');
}
