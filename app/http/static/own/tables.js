// Tables: each cell learns the title of its column, which stands beside it on a phone; columns sort, by server where a
// page holds only some of the rows; what a table has beyond the edge is said above it.
"use strict";

const titleOf = (head) => head.querySelector(".hidden") && !head.querySelector("a, button") ? "" : head.textContent.trim();
// Cells of a part of a table by the column in which they stand: one may cover several, to the right and below.
const grid = (part) => {
  const covered = [];
  return [...part.rows].map((row) => {
    const found = [];
    let at = 0;
    for (const cell of row.cells) {
      while (covered[at] > 0) covered[at++] -= 1;
      for (let i = 0; i < cell.colSpan; i += 1) {
        found[at] = cell;
        covered[at++] = cell.rowSpan - 1;
      }
    }
    while (at < covered.length) { if (covered[at] > 0) covered[at] -= 1; at += 1; }
    return found;
  });
};

// What a cell is sorted by: a number in the smallest of its units, or its words. null: it has nothing, and goes last.
const UNITS = {
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, ms: 0.001, s: 1, min: 60, h: 3600, d: 86400,
};
const keyOf = (cell) => {
  if (!cell) return null;
  const moment = cell.querySelector("time[datetime]");
  const text = cell.dataset.sort ?? (moment ? moment.dateTime : cell.textContent.trim());
  if (text === "" || text === "–") return null;
  const number = /^(-?[\d\u202f]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([A-Za-z]*)/.exec(text);
  return moment || !number ? text : Number(number[1].replaceAll("\u202f", "")) * (UNITS[number[2]] ?? 1);
};
const later = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));

const orders = new Map();  // by the name of a table: what it was sorted by outlives that it is loaded anew
const unitsOf = (table) => (table.tBodies.length > 1 ? [...table.tBodies] : [...(table.tBodies[0] || { rows: [] }).rows]);
const sorted = (table, column, direction) => {
  const units = table.inOrder;
  const key = (unit) => {
    const cells = table.tBodies.length > 1 ? grid(unit).map((row) => row[column]) : [unit.cells[column]];
    const keys = cells.map(keyOf).filter((one) => one !== null);
    return keys.every((one) => typeof one === "number") && keys.length ? Math.max(...keys) : keys[0] ?? null;
  };
  const keyed = units.map((unit) => [key(unit), unit]);
  if (direction) keyed.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : direction * later(a, b)));
  const into = units[0].parentElement;
  into.append(...keyed.map(([, unit]) => unit));
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    if (i === column && direction) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
};
const sortable = (table, heads, box) => {
  const name = box.getAttribute("aria-label");
  table.inOrder = unitsOf(table);
  const part = document.createElement("p");
  part.className = "hint noprint";
  part.textContent = "Sorted: the rows of this page, not those of the others.";
  part.hidden = true;
  if (isPart(box)) box.before(part);
  const plain = table.tBodies.length > 1 || !table.querySelector("tbody [rowspan], tbody [colspan]");
  if (table.matches("[data-fixed]") || table.inOrder.length < 2 || !plain || heads.some((head) => head.querySelector("a"))) return;
  heads.forEach((head, column) => {
    if (!titleOf(head) || head.colSpan > 1) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = table.inOrder.some((unit) => typeof keyOf((unit.rows ? unit.rows[0] : unit).cells[column]) === "string") ? 1 : -1;
      const before = { ascending: 1, descending: -1 }[head.getAttribute("aria-sort")] || 0;
      const direction = before === 0 ? first : before === first ? -first : 0;
      orders.set(name, [column, direction]);
      sorted(table, column, direction);
      part.hidden = !direction;
    });
  });
  if (orders.has(name)) {
    sorted(table, ...orders.get(name));
    part.hidden = !orders.get(name)[1];
  }
};

// Whether a page has only some of a table's rows: links to the others follow it.
const isPart = (box) => {
  for (let next = box.nextElementSibling; next && !next.matches("h2, .scroll"); next = next.nextElementSibling) {
    if (next.matches("nav.pages") && next.querySelector("a")) return true;
  }
  return false;
};

// What is beside the edge: the titles of its columns, above the table.
const beyond = (box, note, heads) => {
  const { left, right } = box.getBoundingClientRect();
  const hidden = heads.filter((head) => titleOf(head) && (head.getBoundingClientRect().right > right + 1 || head.getBoundingClientRect().left < left - 1));
  const over = box.scrollWidth > box.clientWidth + 1;
  note.hidden = !over;
  box.classList.toggle("over", over);
  if (over) note.textContent = `↔ Wider than the screen, to be moved sideways. ${hidden.length ? "Not in view: " + hidden.map(titleOf).join(", ") + "." : ""}`;
};
const tables = () => {
  for (const box of document.querySelectorAll("main .scroll:not([data-known])")) {
    const table = box.querySelector("table");
    if (!table || !table.tHead) continue;
    box.dataset.known = "";
    const heads = [...table.tHead.rows[0].cells];
    const titles = heads.flatMap((head) => Array(head.colSpan).fill(titleOf(head)));
    for (const part of table.tBodies) {
      for (const row of grid(part)) row.forEach((cell, i) => {
        if (cell.colSpan === 1 && cell.scope !== "rowgroup") cell.dataset.label = titles[i] || "";
        if (cell.textContent.trim() === "–") cell.dataset.none = "";
      });
    }
    table.classList.add("stack");
    sortable(table, heads, box);
    const note = document.createElement("p");
    note.className = "hint beyond noprint";
    note.hidden = true;
    box.before(note);
    const look = () => beyond(box, note, heads);
    box.addEventListener("scroll", look, { passive: true });
    const seen = new ResizeObserver(look);
    seen.observe(box);
    seen.observe(table);
  }
};
document.addEventListener("htmx:afterSettle", tables);
document.addEventListener("DOMContentLoaded", tables);
