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

  // Charts: the values at the pointer.
  for (const figure of all(".chart")) {
    const svg = figure.querySelector("svg");
    const readout = figure.querySelector(".readout");
    const cross = figure.querySelector(".cross");
    const lines = JSON.parse(figure.dataset.lines);
    const names = JSON.parse(figure.dataset.names);
    const longest = lines.reduce((a, b) => (b.length > a.length ? b : a));
    const closest = (points, x) => points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
    let at = 0;
    const show = (x) => {
      const point = closest(longest, x);
      at = longest.indexOf(point);
      cross.setAttribute("d", `M${point[0]},12 V202`);
      readout.textContent =
        `${figure.dataset.x} ${point[2]}: ` +
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
      says.textContent = own === other ? `✓ nearest: same class (${score.toFixed(2)})` : `✗ nearest: ${names[other]} (${score.toFixed(2)})`;
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

  // The complete table of a study: sorted by a click on a heading, filtered by words or by column=value.
  for (const box of all("#all")) {
    if (!box.querySelector("tbody")) continue;
    const body = box.querySelector("tbody");
    const heads = all("thead th", box);
    const input = box.querySelector("input");
    const rowCount = box.querySelector(".row-count");
    const names = heads.map((head) => head.dataset.name);
    const plain = (text) => text.trim().toLowerCase().replaceAll('"', "");
    const rows = [...body.rows].map((row, at) => {
      const cells = [...row.cells].map((cell) => {
        const value = cell.querySelector("[data-value]");
        return plain(value ? value.textContent : cell.textContent);
      });
      const numbers = [...row.cells].map((cell) => (cell.dataset.n ? +cell.dataset.n : null));
      return { row, at, cells, numbers, text: cells.join(" ") };
    });
    const blank = (text) => text === "" || text === "–";
    // on paper, where the headings are gone, each cell has its label
    for (const each of rows) {
      [...each.row.cells].forEach((cell, at) => {
        cell.dataset.label = heads[at].textContent.trim();
        cell.classList.toggle("unknown", blank(each.cells[at]));
      });
    }

    const sort = (column, down) => {
      const sign = down ? -1 : 1;
      const order = [...rows].sort((a, b) => {
        const [x, y] = [a.numbers[column], b.numbers[column]];
        if (x !== null && y !== null) return sign * (x - y) || a.at - b.at;
        const [s, t] = [a.cells[column], b.cells[column]];
        // unknown values come last in both orders
        if (blank(s) !== blank(t)) return blank(s) ? 1 : -1;
        return sign * s.localeCompare(t, "en", { numeric: true }) || a.at - b.at;
      });
      body.append(...order.map((each) => each.row));
      heads.forEach((head, at) => {
        if (at === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
    };
    heads.forEach((head, at) => {
      head.querySelector("button").addEventListener("click", () => {
        // numbers start with the highest, names with the first
        const now = head.getAttribute("aria-sort");
        sort(at, now ? now === "ascending" : head.classList.contains("number"));
      });
    });

    const filter = () => {
      const terms = [...input.value.matchAll(/([^\s="]+)=("[^"]*"|\S*)|"([^"]*)"|(\S+)/g)].map((match) => {
        const column = match[1] === undefined ? -1 : names.indexOf(match[1].toLowerCase());
        if (column >= 0) return (each) => each.cells[column] === plain(match[2]);
        const word = plain(match[3] ?? match[0]);
        return (each) => each.text.includes(word);
      });
      let shown = 0;
      for (const each of rows) {
        each.row.hidden = !terms.every((fits) => fits(each));
        shown += !each.row.hidden;
      }
      rowCount.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    };
    box.classList.add("alive");
    input.addEventListener("input", filter);
    filter();
    for (const link of all("[data-filter]")) {
      link.addEventListener("click", () => {
        input.value = link.dataset.filter;
        filter();
      });
    }

    // On paper all rows are shown.
    addEventListener("beforeprint", () => rows.forEach((each) => (each.row.hidden = false)));
    addEventListener("afterprint", filter);
  }

  // On paper everything is open.
  addEventListener("beforeprint", () => all("details").forEach((each) => (each.open = true)));
})();
