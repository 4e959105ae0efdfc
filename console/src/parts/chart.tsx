import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { duration, rate } from "../lib/format.js";
import { linePath } from "../lib/history.js";
import { useObservable } from "../lib/observable.js";
import { theme, zone } from "../lib/preferences.js";

/** A line without axes, for a card. `label` says in words what it shows. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const width = 240;
  const height = 32;
  const line = linePath(values, width, height);
  return (
    <svg class="sparkline" viewBox={`0 -1 ${width} ${height + 2}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="area" d={`${line}L${width} ${height}L0 ${height}Z`} />
      <path class="line" d={line} />
    </svg>
  );
}

export interface Curve {
  name: string;
  values: (number | null)[];
  /** A variable of the style sheet. */
  color: string;
  dash?: number[];
  fill?: boolean;
}

/** Steps of an axis that counts. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

export type Unit = "rate" | "per-minute" | "count" | "seconds";

const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

function inUnit(unit: Unit, value: number | null): string {
  if (value === null || value === undefined) return "–";
  if (unit === "rate") return value < 0.01 ? fine.format(value) + "/s" : rate(value);
  if (unit === "per-minute") return fine.format(value) + "/min";
  if (unit === "seconds") return duration(value);
  return String(Math.round(value));
}

/** The colour that a variable of the style sheet has now: a canvas knows no variables. */
function colorOf(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.className = "probe " + name;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

export function Chart({ title, at, curves, unit }: { title: string; at: number[]; curves: Curve[]; unit: Unit }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const chosen = useObservable(theme);
  const inZone = useObservable(zone);
  const names = curves.map((one) => one.name).join();
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      const axis = colorOf(element, "ink-quiet");
      const grid = colorOf(element, "ink-line");
      const common = { stroke: axis, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
      plot.current = new uPlot(
        {
          width: Math.max(200, element.clientWidth),
          height: 180,
          cursor: { y: false },
          legend: { live: true },
          ...(inZone === "utc" ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") } : {}),
          scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
          axes: [
            {
              ...common,
              values: [
                [86400, "{DD} {MMM}", null, null, null, null, null, null, 1],
                [3600, "{HH}:{mm}", null, null, null, null, null, null, 1],
                [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
                [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
              ],
            },
            { ...common, size: 76, ...(unit === "count" ? { incrs: WHOLE } : {}), values: (_plot, splits) => splits.map((value) => inUnit(unit, value)) },
          ],
          series: [
            { label: inZone === "utc" ? "Time (UTC)" : "Time", value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" },
            ...curves.map((one) => ({
              label: one.name,
              stroke: colorOf(element, one.color),
              width: 1.5,
              // A step alone between two in which nothing happened has no line.
              points: { show: unit === "seconds", size: 5, fill: colorOf(element, one.color) },
              spanGaps: false,
              ...(one.dash ? { dash: one.dash } : {}),
              ...(one.fill ? { fill: colorOf(element, one.color + "-faint") } : {}),
              value: (_plot: uPlot, value: number | null) => inUnit(unit, value),
            })),
          ],
        },
        [at, ...curves.map((one) => one.values)],
        element,
      );
    };
    draw();
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      if (Math.abs(element.clientWidth - width) < 2) return;
      width = element.clientWidth;
      plot.current?.setSize({ width: Math.max(200, width), height: 180 });
    });
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [chosen, inZone, names, unit]);
  useEffect(() => {
    plot.current?.setData([at, ...curves.map((one) => one.values)]);
  }, [at]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}
