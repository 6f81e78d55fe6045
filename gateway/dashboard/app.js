// Polls /metrics, parses Prometheus' text format, and writes the numbers into the page. No state is kept elsewhere.
"use strict";

const EVERY_MS = 2000;
const POINTS = 60; // samples in a sparkline: two minutes

// ---- Prometheus' text format -------------------------------------------------------------------------------------

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { n: "\n", "\\": "\\", '"': '"' };

function parse(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, raw] of (match[2] || "").matchAll(LABEL)) {
      labels[name] = raw.replace(/\\(.)/g, (whole, sign) => ESCAPES[sign] ?? whole);
    }
    const value = match[3] === "+Inf" ? Infinity : match[3] === "-Inf" ? -Infinity : Number(match[3]);
    if (!samples.has(match[1])) samples.set(match[1], []);
    samples.get(match[1]).push({ labels, value });
  }
  return samples;
}

const of = (samples, name, where = () => true) => (samples.get(name) || []).filter((sample) => where(sample.labels));
const sum = (samples, name, where) => of(samples, name, where).reduce((total, sample) => total + sample.value, 0);

function by(samples, name, key, where) {
  const groups = new Map();
  for (const { labels, value } of of(samples, name, where)) {
    const group = key(labels);
    groups.set(group, (groups.get(group) || 0) + value);
  }
  return [...groups].filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
}

// A quantile out of a histogram's cumulative buckets, linear within the bucket, as Prometheus does it.
function quantile(samples, name, share) {
  const buckets = new Map();
  for (const { labels, value } of of(samples, `${name}_bucket`)) {
    const edge = labels.le === "+Inf" ? Infinity : Number(labels.le);
    buckets.set(edge, (buckets.get(edge) || 0) + value);
  }
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]);
  const all = sorted.length ? sorted[sorted.length - 1][1] : 0;
  if (!all) return null;
  let below = 0;
  let from = 0;
  for (const [edge, count] of sorted) {
    if (count >= share * all) {
      if (edge === Infinity) return from;
      return count === below ? edge : from + ((edge - from) * (share * all - below)) / (count - below);
    }
    below = count;
    from = edge;
  }
  return from;
}

// ---- Words ---------------------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const count = (value) => (value < 100000 ? whole.format(Math.round(value)) : short.format(value));
const percent = (part, all) => (all ? `${((100 * part) / all).toFixed(1)} %` : "–");

function seconds(value) {
  if (value === null) return "–";
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return `${value.toFixed(1)} s`;
}

const HOW = {
  new: "summary waited for",
  ahead: "summary made ahead",
  evicted: "left out without one",
  failed: "summary failed",
};

// ---- The page ------------------------------------------------------------------------------------------------------

const at = (id) => document.getElementById(id);

function put(id, text) {
  const place = at(id);
  if (place.textContent !== text) place.textContent = text;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function bars(id, rows, none) {
  const most = Math.max(...rows.map(([, value]) => value), 1);
  const parts = rows.flatMap(([name, value]) => {
    const bar = element("progress");
    bar.max = most;
    bar.value = value;
    bar.setAttribute("aria-label", name);
    return [element("span", "", name), bar, element("span", "count", count(value))];
  });
  at(id).replaceChildren(...(parts.length ? parts : [element("span", "empty", none)]));
}

function rows(id, table) {
  const made = table.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((cell) => element("td", "", cell)));
    return row;
  });
  at(id).tBodies[0].replaceChildren(...made);
}

function spark(id, points) {
  const place = at(id);
  if (points.length < 2) return;
  const most = Math.max(...points, 1e-9);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const x = (index) => ((index + POINTS - points.length) * 100) / (POINTS - 1);
  line.setAttribute("points", points.map((value, index) => `${x(index).toFixed(1)},${(30 - (28 * value) / most).toFixed(1)}`).join(" "));
  place.setAttribute("viewBox", "0 0 100 32");
  place.setAttribute("preserveAspectRatio", "none");
  place.replaceChildren(line);
}

// ---- One reading ---------------------------------------------------------------------------------------------------

const history = { requests: [], saved: [] };
let last = null;

function remember(name, value) {
  history[name].push(value);
  if (history[name].length > POINTS) history[name].shift();
}

function overview(samples, now) {
  const requests = sum(samples, "gateway_requests_total");
  const before = sum(samples, "gateway_tokens_before_total");
  const after = sum(samples, "gateway_tokens_after_total");
  const kind = (name) => sum(samples, "gateway_usage_tokens_total", (labels) => labels.kind === name);
  const prompt = kind("prompt");
  const cached = kind("cached");
  const passed = sum(samples, "gateway_passthrough_total");
  const flying = sum(samples, "gateway_requests_in_flight");

  let rate = 0;
  if (last && now > last.now && requests >= last.requests) {
    rate = ((requests - last.requests) * 1000) / (now - last.now);
    remember("requests", rate);
    remember("saved", Math.max(0, before - after - last.saved));
  }
  last = { now, requests, saved: before - after };

  put("requests", count(requests));
  put("requests-note", `${rate.toFixed(1)}/s, ${count(flying)} in flight${passed ? `, ${count(passed)} passed through` : ""}`);
  put("saved", percent(before - after, before));
  put("saved-note", before ? `${count(before)} → ${count(after)}` : "no chat request yet");
  put("cached", percent(cached, prompt));
  const spent = (name) => sum(samples, "gateway_summary_tokens_total", (labels) => labels.kind === name);
  const summaries = spent("prompt") + spent("completion");
  put("cached-note", prompt ? `${count(cached)} of ${count(prompt)} prompt tokens${summaries ? `; summaries took ${count(summaries)} more` : ""}` : "no usage reported yet");
  put("ttfb", seconds(quantile(samples, "gateway_upstream_first_byte_seconds", 0.5)));
  put("ttfb-note", `p99 ${seconds(quantile(samples, "gateway_upstream_first_byte_seconds", 0.99))}`);
  put("own", seconds(quantile(samples, "gateway_pipeline_seconds", 0.5)));
  put("own-note", `p99 ${seconds(quantile(samples, "gateway_pipeline_seconds", 0.99))}, summaries waited for included`);
  spark("requests-spark", history.requests);
  spark("saved-spark", history.saved);
}

function trouble(samples) {
  const failing = (labels) => Number(labels.status) >= 400 && labels.status !== "499";
  const found = [
    ...by(samples, "gateway_requests_total", (labels) => `upstream ${labels.status}`, failing),
    ...by(samples, "gateway_passthrough_total", (labels) => `passed through ${labels.status}`, failing),
    ...by(samples, "gateway_refusals_total", (labels) => `refused: ${labels.code}`),
    ...by(samples, "gateway_stage_failures_total", (labels) => `stage failed: ${labels.stage}`),
    ...by(samples, "gateway_overflows_total", () => "context too long upstream"),
    ...by(samples, "gateway_client_disconnects_total", (labels) => `client left while ${labels.phase}`),
    ...by(samples, "gateway_recalls_late_total", () => "recall too late"),
    ...by(samples, "gateway_dropped_tasks_total", (labels) => `skipped: ${labels.task}`),
    ...by(samples, "gateway_fallbacks_total", () => "sent to a fallback"),
  ];
  bars("trouble", found.sort((a, b) => b[1] - a[1]), "None.");
  // A request refused before it was understood (4xx of our own) is in no other count.
  const refused = sum(samples, "gateway_refusals_total", (labels) => Number(labels.status) < 500);
  const errors = refused + sum(samples, "gateway_requests_total", failing) + sum(samples, "gateway_passthrough_total", failing);
  const all = refused + sum(samples, "gateway_requests_total") + sum(samples, "gateway_passthrough_total");
  put("errors", count(errors));
  put("errors-note", all ? `${percent(errors, all)} of ${count(all)} answers` : "");
  at("errors-tile").classList.toggle("bad", errors > 0);
}

function models(samples) {
  const known = new Map(of(samples, "gateway_tokens_before_total").map(({ labels }) => [`${labels.route}\n${labels.model}`, labels]));
  const table = [...known.values()].map(({ route, model }) => {
    const mine = (labels) => labels.route === route && labels.model === model;
    const before = sum(samples, "gateway_tokens_before_total", mine);
    const after = sum(samples, "gateway_tokens_after_total", mine);
    const used = (kind) => sum(samples, "gateway_usage_tokens_total", (labels) => mine(labels) && labels.kind === kind);
    const ratio = of(samples, "gateway_calibration_ratio", mine)[0];
    return {
      requests: sum(samples, "gateway_requests_total", mine),
      cells: [count(before), count(after), percent(before - after, before), percent(used("cached"), used("prompt")), ratio ? `× ${ratio.value.toFixed(3)}` : "–"],
      names: [route, model],
    };
  });
  table.sort((a, b) => b.requests - a.requests);
  rows("models", table.map(({ names, requests, cells }) => [...names, count(requests), ...cells]));
}

function delays(samples) {
  const row = (title, name) => [title, count(sum(samples, `${name}_count`)), ...[0.5, 0.9, 0.99].map((share) => seconds(quantile(samples, name, share)))];
  rows("delays", [row("gateway's own, all stages", "gateway_pipeline_seconds"), row("upstream's first byte", "gateway_upstream_first_byte_seconds")]);
}

function show(samples, now) {
  overview(samples, now);
  const stage = ({ stage, action }) => (action === "messages" ? stage : `${stage}: ${action}`);
  bars("stages", by(samples, "gateway_stage_actions_total", stage), "Nothing yet.");
  bars("compactions", by(samples, "gateway_compactions_total", ({ how }) => HOW[how] || how), "None yet.");
  bars("memories", by(samples, "gateway_memories_total", (labels) => labels.outcome), "None yet.");
  trouble(samples);
  models(samples);
  delays(samples);
}

async function poll() {
  const status = at("status");
  try {
    const answer = await fetch("metrics", { cache: "no-store" });
    if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`);
    show(parse(await answer.text()), performance.now());
    status.textContent = `as of ${new Date().toLocaleTimeString()}`;
    status.classList.remove("away");
  } catch (error) {
    status.textContent = `no answer: ${error.message}`;
    status.classList.add("away");
  }
  setTimeout(poll, document.hidden ? 5 * EVERY_MS : EVERY_MS);
}

poll();
