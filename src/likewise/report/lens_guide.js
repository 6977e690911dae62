"use strict";
// Six steps for a reader who has never seen a gradient; each sets the page up and says what to look at.
const Guide = (() => {
  const $ = (selector) => document.querySelector(selector);
  const few = "classes=2&each=3&preset=random&seed=7&arrows=0.6";
  const STEPS = [
    {
      title: "Every point is a picture",
      text: "A network turns each picture into a point on this circle. Color and shape show the class: here are three pictures of class A and three of class B. The network is new and has not found the classes yet.",
      state: `loss=Contrastive&${few}`,
      look: ".ring canvas",
    },
    {
      title: "Near means alike",
      text: "The similarity of two pictures is 1 where their points coincide, 0 at a right angle, and −1 across the circle. Pictures of one class should be near each other and far from the other class. Try it: drag a point to its own class.",
      state: `loss=Contrastive&${few}`,
      look: ".ring canvas",
    },
    {
      title: "The loss is one number for how wrong this is",
      text: "It looks at every pair of points: it grows with pairs of one class that are far apart and with pairs of different classes that are close. Zero would be perfect. Drag a point and watch the number.",
      state: `loss=Contrastive&${few}`,
      look: ".says",
    },
    {
      title: "The arrows are the gradient",
      text: "For each point, the gradient is the direction in which the loss grows, and how fast. Each black arrow is the opposite: the direction in which the loss falls. At the selected point, blue is the pull of its own class, and red the push of the other one.",
      state: `loss=Contrastive&${few}`,
      look: ".ring canvas",
    },
    {
      title: "Training follows the arrows",
      text: "Every step moves all points a little along their arrows, and then the arrows are computed again. Press Play: the classes separate and the loss decreases. A network is trained in the same way, except that its weights change instead of the points.",
      state: `loss=Contrastive&${few}`,
      look: "#play",
    },
    {
      title: "Losses weight pairs differently",
      text: "Both losses see the same points, and their arrows differ: Contrastive weights all wrong pairs equally, Multi-similarity weights the hardest pairs most. The plot of weight against similarity shows this for every pair. Choose other losses, change their parameters, and press Play.",
      state: "loss=Contrastive&beside=Multi-similarity&preset=hard&classes=3&each=4",
      look: ".scatter canvas",
    },
  ];
  let at = -1;
  let show = null; // puts the page into a state

  const point = (selector) => {
    document.querySelectorAll(".pointed").forEach((each) => each.classList.remove("pointed"));
    if (selector) $(selector)?.classList.add("pointed");
  };

  const go = (place) => {
    at = place;
    const step = STEPS[at];
    $("#guide").hidden = !step;
    $("#tour").hidden = Boolean(step);
    document.body.classList.toggle("touring", Boolean(step) && at < STEPS.length - 1); // the last step shows the whole page
    point(step?.look);
    if (!step) return;
    show(step.state);
    point(step.look); // the element may be new
    $("#guide-place").textContent = `${at + 1} of ${STEPS.length}`;
    $("#guide-title").textContent = step.title;
    $("#guide-text").textContent = step.text;
    $("#guide-back").disabled = at === 0;
    $("#guide-next").textContent = at === STEPS.length - 1 ? "Done" : "Next";
  };

  // open: whether the page opens with it
  const start = (showState, open) => {
    show = (state) => {
      const named = new URLSearchParams(state);
      for (const name of ["loss", "beside"]) if (named.has(name) && !(named.get(name) in LENS)) named.delete(name);
      showState(`#${named}`);
    };
    $("#guide-next").addEventListener("click", () => go(at + 1));
    $("#guide-back").addEventListener("click", () => go(at - 1));
    $("#guide-skip").addEventListener("click", () => go(-1));
    $("#tour").addEventListener("click", () => {
      go(0);
      $("#guide-title").focus();
    });
    if (open) go(0);
    else $("#tour").hidden = false;
  };

  return { start, STEPS };
})();
