// What pages do beyond HTML: copy, print, charts, and live parts that rest while nobody looks. Works on what the server
// wrote into data attributes; without it every page still says the same.
"use strict";

const copied = async (button) => {
  const text = button.parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.parentElement.querySelector("pre"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copied(button);
  if (event.target.closest("[data-print]")) {
    for (const folded of document.querySelectorAll("section:not(.noprint) details")) folded.open = true;
    window.print();
  }
});

// A file that is chosen goes where it could have been pasted; a slider says its value as it moves.
document.addEventListener("change", async (event) => {
  const into = event.target.dataset.into;
  if (into && event.target.files.length) document.getElementById(into).value = await event.target.files[0].text();
});
const spelled = (value, resource) => {
  const binary = /memory|storage|hugepages/.test(resource);
  const [size, unit] = !binary ? [1, ""] : value >= 2 ** 40 ? [2 ** 40, " TiB"] : value >= 2 ** 30 ? [2 ** 30, " GiB"] : [2 ** 20, " MiB"];
  return (Math.round(1000 * value / size) / 1000).toLocaleString("en").replaceAll(",", "\u202f") + unit;
};
document.addEventListener("input", (event) => {
  const { type, dataset, id, value } = event.target;
  if (type === "range") document.querySelector(`output[for="${id}"]`).textContent = spelled(Number(value), dataset.resource);
});

// One stream of events for all live parts of a page; none while the tab is hidden.
let stream = null;
const listen = () => {
  const parts = document.querySelectorAll("[data-live]");
  if (document.hidden || parts.length === 0) {
    if (stream) stream.close();
    stream = null;
    return;
  }
  if (stream) return;
  const topics = [...new Set([...parts].map((part) => part.dataset.live))];
  stream = new EventSource("/events?" + new URLSearchParams({ topics: topics.join(",") }));
  for (const topic of topics) {
    stream.addEventListener(topic, () => {
      for (const part of document.querySelectorAll("[data-live]")) {
        if (part.dataset.live === topic && !part.contains(document.activeElement)) {
          htmx.ajax("GET", location.href, { target: part, select: "#" + part.id, swap: "outerHTML" });
        }
      }
    });
  }
  stream.addEventListener("error", () => { if (stream && stream.readyState === 2) stream = null; });
};
document.addEventListener("visibilitychange", listen);
document.addEventListener("htmx:afterSettle", listen);
window.addEventListener("pagehide", () => { if (stream) stream.close(); stream = null; });

const clock = (at) => new Date(1000 * at).toISOString().slice(11, 16);
const colours = ["#2f6fb0", "#c2571a", "#2e8b57", "#8a5fb5", "#b0343c", "#5c7f8f", "#a3871f", "#4a5bc4"];
const charts = () => {
  for (const place of document.querySelectorAll("[data-series]")) {
    if (place.dataset.drawn || typeof uPlot === "undefined") continue;
    place.dataset.drawn = "yes";
    const { x, series } = JSON.parse(place.dataset.series);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
    const line = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    new uPlot({
      width: place.clientWidth, height: 240, tzDate: (at) => uPlot.tzDate(new Date(1000 * at), "Etc/UTC"),
      axes: [{ ...axis, values: (_, at) => at.map(clock) }, { ...axis, size: 56 }],
      series: [{ label: "Time (UTC)", value: (_, at) => at === null ? "--" : clock(at) }, ...series.map((one, i) => ({
        label: one.label, stroke: colours[i % colours.length], width: one.dash ? 1 : 2,
        dash: one.dash ? [6, 4] : undefined, paths: one.bars ? uPlot.paths.bars({ size: [0.7] }) : one.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
        fill: one.bars ? colours[i % colours.length] : undefined, points: { show: false },
      }))],
    }, [x, ...series.map((one) => one.values)], place);
  }
};
document.addEventListener("htmx:afterSettle", charts);
document.addEventListener("DOMContentLoaded", () => { listen(); charts(); });
