#include "heed/inspect/attention_html.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/base/terminal.h"
#include "heed/inspect/color_map.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

/// What is before the data of the page: the style and the elements.
constexpr const char* kPageStart = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention</title>
<style>
  body { font: 15px/1.4 system-ui, sans-serif; color: #222; background: #fff; margin: 1.5em auto; padding: 0 1em; max-width: 76em; }
  h1 { font-size: 1.1em; font-weight: 600; margin: 0 0 .8em; overflow-wrap: anywhere; }
  .bar { display: flex; flex-wrap: wrap; gap: 1em; align-items: center; margin-bottom: 1em; }
  select { font: inherit; max-width: 60vw; }
  #page { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; }
  .row { display: flex; align-items: center; gap: 6px; margin-bottom: 6px; }
  .row > span { width: 9em; white-space: nowrap; color: #555; font-size: 13px; }
  .row button { padding: 2px; border: 2px solid transparent; background: none; cursor: pointer; line-height: 0; border-radius: 4px; }
  .row button[aria-pressed=true] { border-color: #d62728; }
  .row button:focus-visible { outline: 2px solid #1f77b4; }
  .row canvas { width: 72px; height: 72px; image-rendering: pixelated; background: #eee; }
  #large { overflow: auto; max-width: 100%; }
  #large svg { font: 13px system-ui, sans-serif; display: block; }
  #large text { cursor: default; }
  #large text.on { font-weight: 700; fill: #d62728; }
  #note { min-height: 1.5em; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<h1 id="heading"></h1>
<div class="bar">
  <label>Sentence <select id="sentence"></select></label>
  <label><input type="checkbox" id="scale"> colours from 0 to the greatest weight of each map</label>
</div>
<div id="page"><div id="grid"></div><div><h1 id="title"></h1><p id="note"></p><div id="large"></div></div></div>
<noscript>This page draws its maps with JavaScript.</noscript>
<script type="application/json" id="data">)html";

/// What is behind the data: the program of the page.
constexpr const char* kPageEnd = R"html(</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const svg = (name, attributes) => {
  const out = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) out.setAttribute(key, attributes[key]);
  return out;
};
let chosen = 0;  // the map that is large
const sentence = () => data.sentences[get("sentence").value];
// The greatest of the numbers and `least`. A map may have more weights than a function takes arguments.
const greatest = (numbers, least) => numbers.reduce((a, b) => Math.max(a, b), least);
// Returns the function from a weight of the map to its colour.
const colorsOf = (map) => {
  const top = get("scale").checked ? greatest(map.weights, 1) : data.unit;
  return (weight) => data.colors[Math.min(255, Math.round(255 * weight / top))];
};
const percent = (weight) => (weight / data.unit).toFixed(3);

function drawSmall(map, canvas) {
  canvas.width = map.columns.length;
  canvas.height = map.rows.length;
  const context = canvas.getContext("2d"), color = colorsOf(map);
  map.weights.forEach((weight, i) => {
    context.fillStyle = color(weight);
    context.fillRect(i % canvas.width, Math.floor(i / canvas.width), 1, 1);
  });
}

function drawGrid() {
  const grid = get("grid");
  grid.replaceChildren();
  let row = null, key = "";
  sentence().maps.forEach((map, i) => {
    const label = map.kind + ", layer " + map.layer;
    if (label !== key) {
      row = grid.appendChild(document.createElement("div"));
      row.className = "row";
      row.appendChild(document.createElement("span")).textContent = key = label;
    }
    const button = row.appendChild(document.createElement("button"));
    button.title = map.title;
    button.setAttribute("aria-label", map.title);
    button.setAttribute("aria-pressed", i === chosen);
    button.onclick = () => choose(i);
    drawSmall(map, button.appendChild(document.createElement("canvas")));
  });
}

// The width of a text of the large map, in pixels.
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "13px system-ui, sans-serif";
const width = (text) => ruler.measureText(text).width;

function drawLarge() {
  const map = sentence().maps[chosen], large = get("large");
  large.replaceChildren();
  get("title").textContent = map ? map.title : "";
  get("note").textContent = map ? "Point at a cell or a token." : "This line is empty.";
  if (!map) return;
  const rows = map.rows.length, columns = map.columns.length, color = colorsOf(map);
  const cell = Math.max(12, Math.min(28, Math.floor(900 / Math.max(rows, columns))));
  const left = 12 + greatest(map.rows.map(width), 0), top = 12 + greatest(map.columns.map(width), 0);
  const picture = svg("svg", { width: left + columns * cell + 8, height: top + rows * cell + 8 });
  const cells = [], ofRow = [], ofColumn = [];
  let opaque = true;  // all cells; they stay untouched while the pointer goes from cell to cell
  const all = () => 1;
  const show = (words, rowOn, columnOn, opacity) => {
    get("note").textContent = words;
    ofRow.forEach((text, r) => text.classList.toggle("on", rowOn(r)));
    ofColumn.forEach((text, c) => text.classList.toggle("on", columnOn(c)));
    if (opaque && opacity === all) return;
    opaque = opacity === all;
    cells.forEach((rect, i) => rect.setAttribute("opacity", opacity(Math.floor(i / columns), i % columns)));
  };
  const nothing = () => show("Point at a cell or a token.", () => false, () => false, all);
  const strongest = (weights, tokens) => weights.map((weight, i) => [weight, tokens[i]]).sort((a, b) => b[0] - a[0])
    .slice(0, 5).map(([weight, token]) => token + " " + percent(weight)).join(", ");
  map.weights.forEach((weight, i) => {
    const r = Math.floor(i / columns), c = i % columns;
    const rect = svg("rect", { x: left + c * cell, y: top + r * cell, width: cell - 1, height: cell - 1, fill: color(weight) });
    rect.onmouseenter = () => show(map.rows[r] + " \u2192 " + map.columns[c] + ": " + percent(weight), (x) => x === r, (x) => x === c, all);
    cells.push(picture.appendChild(rect));
  });
  map.rows.forEach((token, r) => {
    const text = svg("text", { x: left - 6, y: top + r * cell + cell / 2 + 4, "text-anchor": "end" });
    text.textContent = token;
    text.onmouseenter = () => show(token + " attends to " + strongest(map.columns.map((_, c) => map.weights[r * columns + c]), map.columns),
      (x) => x === r, () => false, (x) => x === r ? 1 : 0.25);
    ofRow.push(picture.appendChild(text));
  });
  map.columns.forEach((token, c) => {
    const x = left + c * cell + cell / 2 + 4;
    const text = svg("text", { x, y: top - 6, transform: "rotate(-90 " + x + " " + (top - 6) + ")" });
    text.textContent = token;
    text.onmouseenter = () => show(token + " is attended to by " + strongest(map.rows.map((_, r) => map.weights[r * columns + c]), map.rows),
      () => false, (x) => x === c, (r, x) => x === c ? 1 : 0.25);
    ofColumn.push(picture.appendChild(text));
  });
  picture.onmouseleave = nothing;
  large.appendChild(picture);
}

function choose(i) {
  chosen = i;
  [...document.querySelectorAll(".row button")].forEach((button, k) => button.setAttribute("aria-pressed", k === i));
  drawLarge();
}

function draw() {
  chosen = Math.min(chosen, Math.max(0, sentence().maps.length - 1));
  get("heading").textContent = sentence().heading;
  drawGrid();
  drawLarge();
}

data.sentences.forEach((each, i) => get("sentence").appendChild(new Option(each.heading, i)));
get("sentence").onchange = draw;
get("scale").onchange = draw;
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "SELECT") return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = chosen + step;
  if (!step || next < 0 || next >= sentence().maps.length) return;
  choose(next);
  document.querySelectorAll(".row button")[next].focus();
  event.preventDefault();
});
if (data.sentences.length > 0) draw();
</script>
</body>
</html>
)html";

/// The number that stands for the weight 1: weights are written as whole numbers.
constexpr int kUnit = 10000;

nlohmann::ordered_json visible(const std::vector<std::string>& tokens) {
  auto out = nlohmann::ordered_json::array();
  for (const std::string& token : tokens) out.push_back(visible_token(token));
  return out;
}

}  // namespace

std::string attention_html(std::span<const AttentionSection> sections) {
  nlohmann::ordered_json data;
  data["unit"] = kUnit;
  auto& colors = data["colors"] = nlohmann::ordered_json::array();
  for (int i = 0; i < 256; ++i) colors.push_back(hex_text(color_of(static_cast<float>(i) / 255)));
  auto& sentences = data["sentences"] = nlohmann::ordered_json::array();
  for (const AttentionSection& section : sections) {
    nlohmann::ordered_json sentence{{"heading", section.heading}, {"maps", nlohmann::ordered_json::array()}};
    for (const AttentionMap& map : section.maps) {
      map.check();
      nlohmann::ordered_json one{{"title", map.title()},
                                 {"kind", map.kind},
                                 {"layer", map.layer},
                                 {"head", map.head},
                                 {"reduction", map.reduction},
                                 {"rows", visible(map.rows)},
                                 {"columns", visible(map.columns)}};
      auto& weights = one["weights"] = nlohmann::ordered_json::array();
      for (const float weight : map.weights)
        weights.push_back(static_cast<int>(std::lround(weight * static_cast<float>(kUnit))));
      sentence["maps"].push_back(std::move(one));
    }
    sentences.push_back(std::move(sentence));
  }
  std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  replace_all(text, "<", "\\u003c");  // within a script element, "<" may begin the element's end, or a comment
  return kPageStart + text + kPageEnd;
}

}  // namespace heed
