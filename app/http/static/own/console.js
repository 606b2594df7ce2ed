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

const base64 = (file) => new Promise((resolve, reject) => {
  const reader = Object.assign(new FileReader(), { onerror: () => reject(reader.error) });
  reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.readAsDataURL(file);
});

// A file that is chosen goes where it could have been pasted; a slider says its value as it moves.
document.addEventListener("change", async (event) => {
  const into = event.target.dataset.into;
  if (!into || !event.target.files.length) return;
  const [file] = event.target.files;
  document.getElementById(into).value = "base64" in event.target.dataset ? await base64(file) : await file.text();
});
// Sizes are in the unit of the page, where it has one; else in that of the largest that is drawn with them.
const SIZES = [["PiB", 2 ** 50], ["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20]];
const sized = (resource, most) => !/memory|storage|hugepages/.test(resource) ? ["", 1]
  : SIZES.find(([unit]) => unit === document.body.dataset.unit) || SIZES.find(([, size]) => most >= size) || ["", 1];
const spelled = (value, [unit, size]) => `${(Math.round(1000 * value / size) / 1000).toLocaleString("en").replaceAll(",", "\u202f")} ${unit}`.trim();
document.addEventListener("input", (event) => {
  const { type, dataset, id, value } = event.target;
  if (type === "range") document.querySelector(`output[for="${id}"]`).textContent = spelled(Number(value), sized(dataset.resource, Number(value)));
});

// The box that finds: "/" leads to it from anywhere, arrows go through what it lists, Escape closes the list.
const hits = () => [...document.querySelectorAll("#hits a")];
document.addEventListener("keydown", (event) => {
  const box = document.getElementById("find");
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = document.activeElement;
  if (event.key === "/" && !at.matches("input, select, textarea, [contenteditable]")) {
    event.preventDefault();
    box.focus();
    box.select();
    return;
  }
  if (!box.form.contains(at)) return;
  const every = [box, ...hits()];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && every.includes(at)) {
    event.preventDefault();
    every[Math.max(0, Math.min(every.length - 1, every.indexOf(at) + step))].focus();
  } else if (event.key === "Escape") {
    document.getElementById("hits").replaceChildren();
    box.focus();
  }
});
document.addEventListener("focusin", (event) => {
  const list = document.getElementById("hits");
  if (list && !event.target.closest(".find")) list.replaceChildren();
});

// Text that somebody types is kept in this tab until the form that has it was taken: a session that ended, a service that
// restarted or an old form loses nothing. Leaving with something unsaved asks.
const TYPED = "form[data-keep] :is(textarea, input:not([type]))[name]";
const shelf = (box) => "arbiter:" + location.pathname + location.search + "#" + box.name;
let unsaved = false;
document.addEventListener("input", (event) => {
  const box = event.target.closest(TYPED);
  if (!box) return;
  unsaved = [...document.querySelectorAll(TYPED)].some((one) => one.value !== one.defaultValue);
  try {
    if (box.value !== box.defaultValue) sessionStorage.setItem(shelf(box), box.value);
    else sessionStorage.removeItem(shelf(box));
  } catch { /* too long to be kept: it is on the page all the same */ }
});
document.addEventListener("submit", (event) => {
  unsaved = false;
  sessionStorage.setItem("arbiter:form", location.pathname);
  if (event.target.matches("form[data-keep]")) sessionStorage.setItem("arbiter:sent", location.pathname + location.search);
});
window.addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
const restored = () => {
  const taken = sessionStorage.getItem("arbiter:sent");
  sessionStorage.removeItem("arbiter:sent");
  // Whoever was led to another page after sending had it taken; the sign-in page is no such place.
  if (taken && taken !== location.pathname + location.search && location.pathname !== "/sign-in" && !document.querySelector("[data-refused]")) {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith("arbiter:" + taken + "#")) sessionStorage.removeItem(key);
  } else if (taken && location.pathname === "/sign-in") {
    sessionStorage.setItem("arbiter:sent", taken);
  }
  for (const form of document.querySelectorAll("form[data-keep]")) {
    const lost = [...form.querySelectorAll(TYPED)].filter((box) => (sessionStorage.getItem(shelf(box)) ?? box.value) !== box.value);
    if (!lost.length) continue;
    const note = document.createElement("p");
    note.className = "notice";
    note.setAttribute("role", "status");
    note.textContent = "What you typed here before was not taken, and is filled in again. ";
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "quiet";
    drop.textContent = "Begin anew";
    drop.addEventListener("click", () => {
      for (const box of lost) {
        box.value = box.defaultValue;
        sessionStorage.removeItem(shelf(box));
      }
      note.remove();
      unsaved = false;
    });
    note.append(drop);
    form.prepend(note);
    for (const box of lost) {
      box.value = sessionStorage.getItem(shelf(box));
      for (let fold = box.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    }
    unsaved = true;
  }
};

// After a form was sent the focus is on what came of it, where that stands on the same page: an error, else the answer.
const told = () => {
  const of = sessionStorage.getItem("arbiter:form");
  sessionStorage.removeItem("arbiter:form");
  const place = of === location.pathname && (document.querySelector("main .problem[data-told]") || document.querySelector("main [data-told]"));
  if (place) place.focus();
};

// A part that could not be asked for anew must not go on saying what was true before.
const away = (event) => {
  const place = event.detail.target;
  if (!place || !place.matches("[role=status], .hits")) return;
  const note = document.createElement("p");
  note.className = "notice";
  const status = event.detail.xhr && event.detail.xhr.status;
  note.textContent = status ? `That could not be asked: the service answered ${status}. Nothing was changed.` : "The service does not answer. Nothing was changed.";
  place.replaceChildren(note);
};
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, away);

const renew = (topic) => {
  for (const part of document.querySelectorAll("[data-live]")) {
    if (part.dataset.live === topic && !part.contains(document.activeElement)) {
      const asked = htmx.ajax("GET", location.href, { target: part, select: "#" + part.id, swap: "outerHTML" });
      asked.catch(() => {});  // `away` says so
    }
  }
};

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
  for (const topic of topics) stream.addEventListener(topic, () => renew(topic));
  stream.addEventListener("open", () => topics.forEach(renew));  // what happened before that is not told
  stream.addEventListener("error", () => { if (stream && stream.readyState === 2) stream = null; });
};
document.addEventListener("visibilitychange", listen);
document.addEventListener("htmx:afterSettle", listen);
window.addEventListener("pagehide", () => { if (stream) stream.close(); stream = null; });

// Below each moment, which is UTC, what the clock of whoever looks says; nothing where that is UTC as well.
const local = () => {
  for (const place of document.querySelectorAll("main time[datetime]:not([data-local])")) {
    const at = new Date(place.dateTime);
    place.dataset.local = "";
    if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) continue;
    const here = document.createElement("small");
    const day = at.toLocaleDateString("sv") === at.toISOString().slice(0, 10) ? {} : { month: "short", day: "numeric" };
    here.textContent = at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
    place.append(" ", here);
  }
};
document.addEventListener("htmx:afterSettle", local);

// Charts: drawn from numbers that stand on the page, or are fetched once the chart is nearly seen; drawn anew in other
// colours when the theme changes. A click on a moment leads to the round of a simulation that was on then.
const clock = (at) => new Date(1000 * at).toISOString().slice(11, 16);
const day = (at) => new Date(1000 * at).toISOString().slice(0, 16).replace("T", " ");
const lasted = (value) => value >= 172800 ? (value / 86400).toPrecision(3) + " d" : value >= 7200 ? (value / 3600).toPrecision(3) + " h" : value >= 120 ? (value / 60).toPrecision(3) + " min" : Number(value.toPrecision(3)) + " s";
const colours = ["#2f6fb0", "#c2571a", "#2e8b57", "#8a5fb5", "#b0343c", "#5c7f8f", "#a3871f", "#4a5bc4"];
const drawn = new Map();
const leading = (place, data) => (chart) => {
  if (!place.dataset.rounds || data.of !== "time") return;
  let from = null;
  chart.over.classList.add("leads");
  chart.over.addEventListener("mousedown", (event) => { from = event.clientX; });
  chart.over.addEventListener("click", (event) => {
    const { idx, top } = chart.cursor;
    if (idx === null || from === null || Math.abs(event.clientX - from) > 3) return;  // it was dragged: zoomed
    const away = (one) => Math.abs(chart.valToPos(chart.data[one][idx], "y") - top);
    const shown = data.series.map((_, i) => i + 1).filter((i) => chart.series[i].show && chart.data[i][idx] !== null);
    const nearest = shown.sort((a, b) => away(a) - away(b))[0];
    const variant = nearest && data.series[nearest - 1].variant;
    const later = setTimeout(() => {
      location.href = place.dataset.rounds + "?" + new URLSearchParams({ at: data.x[idx], ...(variant && variant !== "the run" ? { variant } : {}) });
    }, 350);
    chart.over.addEventListener("dblclick", () => clearTimeout(later), { once: true });  // that shows all again
  });
};
const draw = (place, data) => {
  if (drawn.has(place)) drawn.get(place).chart.destroy();
  const { x, series, unit } = data;
  const look = getComputedStyle(document.documentElement);
  const [ink, line] = ["--soft", "--line"].map((name) => look.getPropertyValue(name).trim());
  const variants = [...new Set(series.map((one) => one.variant))];
  const coloured = (one, i) => one.ink ? look.getPropertyValue("--" + one.ink).trim() : colours[(one.variant === undefined ? i : variants.indexOf(one.variant)) % colours.length];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const most = unit && unit !== "seconds" ? sized(unit, Math.max(0, ...series.flatMap((one) => one.values.map(Number)))) : null;
  const said = (value) => value === null || value === undefined ? "--" : unit === "seconds" ? lasted(value) : most ? spelled(value, most) : value;
  const share = data.of === "share";
  const long = x.length > 1 && x[x.length - 1] - x[0] > 86400;
  const moment = (at) => share ? at + " %" : long ? day(at) : clock(at);
  const chart = new uPlot({
    width: place.clientWidth, height: 240, tzDate: (at) => uPlot.tzDate(new Date(1000 * at), "Etc/UTC"),
    cursor: { drag: { x: true, y: false }, focus: { prox: 24 } }, focus: { alpha: 0.35 }, scales: { x: { time: !share }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? 1.05 * high : 1] } },
    axes: [{ ...axis, values: (_, at) => at.map((one) => share ? one + " %" : long ? day(one).slice(5) : clock(one)), space: long ? 90 : 50 }, { ...axis, size: 76, values: (_, at) => at.map(said) }],
    series: [{ label: share ? "Of the jobs" : "Time (UTC)", value: (_, at) => at === null ? "--" : moment(at) }, ...series.map((one, i) => ({
      label: one.label, stroke: coloured(one, i), width: one.dash ? 1 : 2, dash: one.dash ? [6, 4] : undefined, value: (_, at) => said(at),
      paths: one.bars ? uPlot.paths.bars({ size: [0.7] }) : one.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      fill: one.bars ? coloured(one, i) : undefined, points: { show: false },
    }))],
    hooks: { ready: [leading(place, data)] },
  }, [x, ...series.map((one) => one.values)], place);
  drawn.set(place, { chart, data });
};
const seen = typeof IntersectionObserver === "undefined" ? null : new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) { seen.unobserve(target); fetched(target); }
}, { rootMargin: "400px" });
const fetched = async (place) => {
  try {
    const answer = await fetch(place.dataset.source);
    if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
    draw(place, await answer.json());
  } catch (error) {
    place.textContent = `This could not be drawn: ${error.message}.`;
  }
};
const charts = () => {
  for (const place of drawn.keys()) if (!place.isConnected) { drawn.get(place).chart.destroy(); drawn.delete(place); }
  for (const place of document.querySelectorAll("[data-series], [data-source]")) {
    if (place.dataset.drawn || typeof uPlot === "undefined") continue;
    place.dataset.drawn = "yes";
    if (place.dataset.series) draw(place, JSON.parse(place.dataset.series));
    else if (seen) seen.observe(place);
    else fetched(place);
  }
};
const redrawn = () => { for (const [place, { data }] of drawn) draw(place, data); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawn);
window.addEventListener("resize", () => { for (const [place, { chart }] of drawn) chart.setSize({ width: place.clientWidth, height: 240 }); });
document.addEventListener("htmx:afterSettle", charts);
document.addEventListener("DOMContentLoaded", () => {
  restored();
  told();
  const sent = document.querySelector("a[data-address]");
  if (sent) history.replaceState(null, "", sent.getAttribute("href"));  // and loading the page again asks for no form
  local();
  listen();
  charts();
});
