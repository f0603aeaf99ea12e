// Series since this dashboard began, at most 720 decisions. What is drawn is also said, below each title.
import { byId, clock, colour, element, rate, setText, share } from "./format.js";
import { state } from "./state.js";

const CHARTS = [
  { id: "chart-retransmits", title: "Retransmitted segments", words: share, least: 0.001, series: [["treated", 1, "--c0", []], ["control", 2, "--c5", [6, 4]]] },
  { id: "chart-used", title: "Utilization of links", words: share, most: 1, series: [["busiest", 3, "--hot", []], ["mean", 4, "--c2", [6, 4]]] },
  { id: "chart-sent", title: "Sent by a host, on average", words: rate, least: 1e6, series: [["treated", 5, "--c0", []], ["control", 6, "--c5", [6, 4]]] },
];
const HEIGHT = 150;
const made = [];

export function makeCharts() {
  for (const chart of CHARTS) {
    const figure = byId(chart.id);
    const caption = element("figcaption", "", chart.title), legend = element("ul", "legend");
    const values = chart.series.map(([name, , tone, dash]) => {
      const item = element("li"), key = element("span", dash.length ? "key dashed" : "key"), value = element("span", "value");
      key.style.setProperty("--tone", `var(${tone})`);
      item.append(key, `${name} `, value);
      legend.append(item);
      return value;
    });
    const place = element("div", "plot");
    place.setAttribute("aria-hidden", "true");
    figure.append(caption, legend, place);
    const item = { ...chart, place, values, plot: null };
    item.plot = plot(item);
    made.push(item);
  }
  new ResizeObserver(() => made.forEach((chart) => chart.plot.setSize({ width: chart.place.clientWidth, height: HEIGHT })))
    .observe(byId("charts"));
  addEventListener("theme", () => made.forEach((chart) => chart.plot.redraw(false, true)));
}

function plot(chart) {
  const axis = {
    stroke: () => colour("--dim"), font: "11px system-ui, sans-serif",
    grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false },
  };
  const lines = chart.series.map(([label, , tone, dash]) => ({
    label, dash, stroke: () => colour(tone), width: 1.6, points: { show: false }, spanGaps: false,
  }));
  const most = (_, __, max) => [0, chart.most ?? Math.max(max * 1.1, chart.least)];
  const options = {
    width: chart.place.clientWidth || 300, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 24, 0, 0],
    scales: { y: { range: most } },
    axes: [{ ...axis, space: 60, size: 28, values: (_, ticks) => ticks.map((tick) => clock(tick)) }, { ...axis, size: 62, space: 36, values: (_, ticks) => ticks.map((tick) => chart.words(tick)) }],
    series: [{}, ...lines],
  };
  return new globalThis.uPlot(options, data(chart), chart.place);
}

function data(chart) {
  const of = (place) => state.series.map((point) => point[place]);
  return [of(0), ...chart.series.map(([, place]) => of(place))];
}

export function drawCharts() {
  const last = state.series.at(-1);
  for (const chart of made) {
    chart.plot.setData(data(chart));
    chart.values.forEach((value, i) => setText(value, last ? chart.words(last[chart.series[i][1]]) : "–"));
  }
}
