"use strict";
// Draws each figure from the JSON inside it when it is first shown, in the colours of the page, light or dark.
(() => {
  const narrow = matchMedia("(max-width: 34rem)"); // a phone: dragging scrolls the page, not the axes
  const config = {
    responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const drawn = new Map();

  const themed = (layout) => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const result = structuredClone(layout);
    Object.assign(result, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: colour("--sans"), size: 13, color: colour("--ink") },
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
    });
    for (const [name, axis] of Object.entries(result)) {
      if (/^[xy]axis/.test(name)) Object.assign(axis, { gridcolor: colour("--line"), linecolor: colour("--line"), fixedrange: narrow.matches });
    }
    return result;
  };

  const draw = (plot) => {
    const spec = drawn.get(plot) ?? JSON.parse(plot.querySelector("script").textContent);
    drawn.set(plot, spec);
    Plotly.react(plot, spec.data, themed(spec.layout), config);
  };
  const shown = (plot) => plot.offsetParent !== null;
  const plots = [...document.querySelectorAll(".plot")];
  const drawShown = () => plots.filter((plot) => shown(plot) && !drawn.has(plot)).forEach(draw);

  for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", drawShown);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(draw));

  for (const group of document.querySelectorAll(".switch")) {
    const plot = group.parentElement.querySelector(".plot");
    const buttons = [...group.querySelectorAll("button")];
    const mark = (scale) => buttons.forEach((button) => button.setAttribute("aria-pressed", button.dataset.scale === scale));
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const spec = drawn.get(plot);
        Object.assign(spec.layout.xaxis, spec.x_axes[button.dataset.scale]);
        draw(plot);
        mark(button.dataset.scale);
      });
    }
    draw(plot);
    mark(drawn.get(plot).layout.xaxis.type);
  }
  drawShown();
})();
