"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tabs: without this script every panel is shown under its heading, as on paper.
  for (const box of all(".tabbed")) {
    const tabs = all("[role=tab]", box);
    const choose = (tab) => {
      for (const each of tabs) {
        const chosen = each === tab;
        each.setAttribute("aria-selected", chosen);
        each.tabIndex = chosen ? 0 : -1;
        document.getElementById(each.getAttribute("aria-controls")).hidden = !chosen;
      }
    };
    box.classList.add("alive");
    tabs.forEach((tab, at) => {
      tab.addEventListener("click", () => choose(tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const next = tabs[(at + step + tabs.length) % tabs.length];
        choose(next);
        next.focus();
      });
    });
    choose(tabs[0]);
  }

  // Where a pointer is, in the coordinates of a drawing.
  const place = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    return [((event.clientX - box.left) / box.width) * view.width, ((event.clientY - box.top) / box.height) * view.height];
  };

  // Charts: the values at the place that is pointed at.
  for (const figure of all(".chart")) {
    const svg = figure.querySelector("svg");
    const readout = figure.querySelector(".readout");
    const cross = figure.querySelector(".cross");
    const bars = figure.dataset.bars && JSON.parse(figure.dataset.bars);
    const lines = figure.dataset.lines && JSON.parse(figure.dataset.lines);
    const names = figure.dataset.names && JSON.parse(figure.dataset.names);
    const longest = bars || lines.reduce((a, b) => (b.length > a.length ? b : a));
    const closest = (points, x) => points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
    let at = 0;
    const show = (x) => {
      const point = closest(longest, x);
      at = longest.indexOf(point);
      cross.setAttribute("d", `M${point[0]},12 V202`);
      readout.textContent = bars
        ? `${point[1]} to ${point[2]}: ${point[3]} of the pairs of one class, ${point[4]} of the others`
        : `${figure.dataset.x || "epoch"} ${point[2]}: ` +
          lines.map((points, n) => (lines.length > 1 ? `${names[n]} ` : "") + closest(points, point[0])[3]).join(" · ");
    };
    const clear = () => {
      cross.setAttribute("d", "");
      readout.textContent = "";
    };
    svg.addEventListener("pointermove", (event) => show(place(svg, event)[0]));
    svg.addEventListener("pointerdown", (event) => show(place(svg, event)[0]));
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(longest[Math.min(longest.length - 1, Math.max(0, readout.textContent ? at + step : 0))][0]);
    });
  }

  // The map: the image nearest to the pointer.
  for (const box of all(".map")) {
    const { points, names } = JSON.parse(document.getElementById(box.dataset.map).textContent);
    const svg = box.querySelector("svg");
    const tip = box.querySelector(".tip");
    const thumb = tip.querySelector(".thumb");
    const cursor = box.querySelector(".cursor");
    const groups = all("g", svg);
    let at = -1;
    const hide = () => {
      tip.hidden = true;
      cursor.setAttribute("r", 0);
      svg.classList.remove("picked");
      for (const each of groups) each.classList.remove("same");
      at = -1;
    };
    const show = (index) => {
      if (index === at) return;
      at = index;
      const [x, y, sheet, tx, ty, own, other, score] = points[index];
      cursor.setAttribute("cx", x);
      cursor.setAttribute("cy", y);
      cursor.setAttribute("r", 11);
      svg.classList.add("picked");
      for (const each of groups) each.classList.toggle("same", +each.dataset.class === own);
      thumb.className = `thumb s${sheet}`;
      thumb.style.setProperty("--x", `${tx}%`);
      thumb.style.setProperty("--y", `${ty}%`);
      tip.querySelector("strong").textContent = names[own];
      const says = tip.querySelector(".says");
      says.textContent = own === other ? `✓ nearest: its own class (${score.toFixed(2)})` : `✗ nearest: ${names[other]} (${score.toFixed(2)})`;
      says.className = `says ${own === other ? "good" : "bad"}`;
      tip.hidden = false;
      const field = svg.getBoundingClientRect();
      const left = (x / 1000) * field.width;
      const top = (y / 700) * field.height;
      tip.style.left = `${Math.max(4, Math.min(field.width - tip.offsetWidth - 4, left + (left > field.width / 2 ? -tip.offsetWidth - 14 : 14)))}px`;
      tip.style.top = `${Math.max(4, Math.min(field.height - tip.offsetHeight - 4, top - tip.offsetHeight / 2))}px`;
    };
    const pick = (event) => {
      const [x, y] = place(svg, event);
      let best = -1;
      let least = 45 * 45;
      points.forEach((point, index) => {
        const far = (point[0] - x) ** 2 + (point[1] - y) ** 2;
        if (far < least) [best, least] = [index, far];
      });
      if (best < 0) hide();
      else show(best);
    };
    const walk = (dx, dy) => {
      if (at < 0) return show(0);
      const [x, y] = points[at];
      let best = at;
      let least = Infinity;
      points.forEach((point, index) => {
        const along = (point[0] - x) * dx + (point[1] - y) * dy;
        const across = Math.abs((point[0] - x) * dy) + Math.abs((point[1] - y) * dx);
        if (along > 0.5 && along + 2 * across < least) [best, least] = [index, along + 2 * across];
      });
      show(best);
    };
    svg.addEventListener("pointermove", pick);
    svg.addEventListener("pointerdown", pick);
    svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      walk(...step);
    });
    for (const button of all("[data-by]", box)) {
      button.addEventListener("click", () => {
        for (const each of all("[data-by]", box)) each.setAttribute("aria-pressed", each === button);
        svg.classList.toggle("by-right", button.dataset.by === "right");
      });
    }
  }

  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code").textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("code"));
        button.textContent = "Selected";
      }
    });
  }

  // On paper nothing is folded.
  addEventListener("beforeprint", () => all("details").forEach((each) => (each.open = true)));
})();
