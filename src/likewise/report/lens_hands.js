"use strict";
// Pointer, touch and key input on the circle and on the matrix.
const Hands = (() => {
  const dragging = (panel, { refresh, select, selectedIn, settled, tell, turnTo }) => {
    const { ring } = panel;
    let held = -1;
    const place = (event) => {
      const box = ring.getBoundingClientRect();
      const at = Draw.frame(ring);
      return [event.clientX - box.left, event.clientY - box.top, at];
    };
    const nearest = (event) => {
      const [x, y, at] = place(event);
      let [best, least] = [-1, event.pointerType === "mouse" ? 22 : 34];
      for (let item = 0; item < panel.lane.count; item++) {
        const [px, py] = Draw.spot(at, panel.lane.angle(item));
        const far = Math.hypot(px - x, py - y) - (item === selectedIn(panel.lane) ? 2 : 0);
        if (far < least) [best, least] = [item, far];
      }
      return best;
    };
    const hover = (item) => {
      ring.style.cursor = item < 0 ? "default" : "grab";
      if (item !== panel.hovered) refresh();
      panel.hovered = item;
    };
    ring.addEventListener("pointerleave", () => hover(-1));
    ring.addEventListener("pointerdown", (event) => {
      if (event.button > 0 || !event.isPrimary) return;
      const item = nearest(event);
      if (item < 0) return;
      held = item;
      ring.setPointerCapture(event.pointerId);
      ring.focus({ preventScroll: true });
      select(item);
      event.preventDefault();
    });
    ring.addEventListener("pointermove", (event) => {
      if (held < 0) {
        if (event.pointerType === "mouse") hover(nearest(event));
        return;
      }
      ring.style.cursor = "grabbing";
      const [x, y, at] = place(event);
      turnTo(panel, held, Math.atan2(at.y - y, x - at.x));
    });
    const release = () => {
      if (held < 0) return;
      held = -1;
      settled();
      tell(panel.told || "");
    };
    ring.addEventListener("pointerup", release);
    ring.addEventListener("pointercancel", release);
    for (const name of ["focus", "blur"]) ring.addEventListener(name, refresh);
  };

  const turning = (panel, { select, selectedIn, settled, tell, turnTo }) => {
    panel.ring.addEventListener("keydown", (event) => {
      const { lane } = panel;
      const item = selectedIn(lane);
      const turn = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
      const walk = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (turn) {
        turnTo(panel, item, lane.angle(item) + (turn * (event.shiftKey ? 10 : 2) * Batch.TURN) / 360);
        settled();
      } else if (walk) select((item + walk + lane.count) % lane.count);
      else if (event.key === "Home") select(0);
      else if (event.key === "End") select(lane.count - 1);
      else return;
      event.preventDefault();
      tell(`${Words.point(lane, selectedIn(lane))} ${Words.value(lane)}`);
    });
  };

  const circle = (panel, does) => {
    dragging(panel, does);
    turning(panel, does);
  };

  // Pointing at the matrix tells about a pair; a click selects the row's point.
  const matrix = (panel, { select }) => {
    const at = (event) => {
      const group = panel.lane && panel.lane.groups[panel.lane.view];
      if (!group) return null;
      const box = panel.heat.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * group.m);
      const column = Math.floor(((event.clientX - box.left) / box.width) * group.n);
      return row >= 0 && row < group.m && column >= 0 && column < group.n ? [group, row, column] : null;
    };
    const readout = panel.root.querySelector(".readout");
    const still = () => (readout.textContent = "row by row; darker is heavier");
    still();
    panel.heat.addEventListener("pointermove", (event) => {
      const found = at(event);
      if (!found) return;
      readout.textContent = Words.pair(panel.lane, ...found);
    });
    panel.heat.addEventListener("pointerleave", still);
    panel.heat.addEventListener("click", (event) => {
      const found = at(event);
      if (found && found[0].rows !== "classes") select(panel.lane.itemOf(found[0].rows, found[1], 0));
    });
  };

  return { circle, matrix };
})();
