"use strict";
// The formulas of the docstrings, which are LaTeX, as MathML, which browsers draw by themselves.
const Formula = (() => {
  const SIGNS = {
    alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", varepsilon: "ε", lambda: "λ", mu: "μ", nu: "ν", sigma: "σ",
    tau: "τ", theta: "θ", psi: "ψ", phi: "φ", pi: "π", omega: "ω", Delta: "Δ", ell: "ℓ", infty: "∞",
  };
  const OPERATORS = {
    sum: "∑", prod: "∏", cdot: "·", in: "∈", notin: "∉", ne: "≠", neq: "≠", le: "≤", ge: "≥", leq: "≤", geq: "≥", pm: "±",
    times: "×", to: "→", partial: "∂", lVert: "‖", rVert: "‖", Vert: "‖", lvert: "|", rvert: "|", vert: "|", mid: "|",
    ldots: "…", dots: "…", cup: "∪", setminus: "∖", approx: "≈", propto: "∝", langle: "⟨", rangle: "⟩", top: "⊤", circ: "∘",
  };
  const SPACES = { ",": "0.17em", ";": "0.28em", ":": "0.22em", "!": "-0.17em", quad: "1em", qquad: "2em", " ": "0.3em" };
  const NAMES = ["log", "exp", "min", "max", "cos", "sin", "tan", "arccos"];
  const EMPTY = ["left", "right", "displaystyle", "limits", "mathstrut"];
  const LARGE = { Bigl: "1.7em", Bigr: "1.7em", Big: "1.7em", bigl: "1.25em", bigr: "1.25em", big: "1.25em" };
  const ACCENTS = { bar: "¯", hat: "^", tilde: "~" };
  const STRETCHED = "()[]|‖{}⟨⟩";

  const make = (name, ...children) => {
    const element = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
    element.append(...children);
    return element;
  };
  const row = (parts) => (parts.length === 1 ? parts[0] : make("mrow", ...parts));

  class Reader {
    constructor(text) {
      // words keep their spaces
      this.tokens = text.match(/\\(?:mathrm|text|operatorname|mathbf|mathbb)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\.|[^\s\\]/gs) || [];
      this.at = 0;
    }

    until(end) {
      const parts = [];
      while (this.at < this.tokens.length && this.tokens[this.at] !== end) {
        const part = this.scripted();
        if (part) parts.push(part);
      }
      this.at++;
      return parts;
    }

    // something, with what stands below and above it
    scripted() {
      const base = this.one();
      let [below, above] = [null, null];
      for (;;) {
        const next = this.tokens[this.at];
        if (next === "_" && !below) below = (this.at++, this.one());
        else if (next === "^" && !above) above = (this.at++, this.one());
        else if (next === "'" && !above) above = (this.at++, make("mo", "′"));
        else break;
      }
      if (!below && !above) return base;
      const held = base || make("mrow");
      const big = held.textContent === "∑" || held.textContent === "∏";
      if (below && above) return make(big ? "munderover" : "msubsup", held, below, above);
      if (below) return make(big || ["min", "max"].includes(held.textContent) ? "munder" : "msub", held, below);
      return make(big ? "mover" : "msup", held, above);
    }

    one() {
      const token = this.tokens[this.at++];
      if (token === undefined) return make("mrow");
      if (token === "{") return row(this.until("}"));
      if (token.startsWith("\\")) return this.command(token.slice(1));
      if (/[0-9]/.test(token)) {
        let digits = token;
        while (/^[0-9.]$/.test(this.tokens[this.at] || "")) digits += this.tokens[this.at++];
        return make("mn", digits);
      }
      if (/[a-zA-Z]/.test(token)) return make("mi", token);
      return this.operator(token === "-" ? "−" : token);
    }

    operator(sign) {
      const made = make("mo", sign);
      if (STRETCHED.includes(sign)) made.setAttribute("stretchy", "false");
      return made;
    }

    command(name) {
      if (EMPTY.includes(name)) return null;
      if (name in LARGE) {
        const made = this.one();
        if (made && made.localName === "mo") made.setAttribute("mathsize", LARGE[name]);
        return made;
      }
      if (/^[dt]?frac$/.test(name)) return make("mfrac", this.digit() || this.one(), this.digit() || this.one());
      if (name === "sqrt") return make("msqrt", this.one());
      if (name in ACCENTS) {
        const made = make("mover", this.one(), make("mo", ACCENTS[name]));
        made.setAttribute("accent", "true");
        return made;
      }
      if (name.endsWith("}")) return make("mtext", name.slice(name.indexOf("{") + 1, -1).replaceAll(" ", "\u00a0"));
      if (name === "mathcal") return this.one();
      if (name in SIGNS) return make("mi", SIGNS[name]);
      if (name in OPERATORS) return this.operator(OPERATORS[name]);
      if (NAMES.includes(name)) return make("mi", name);
      if (name in SPACES) {
        const made = make("mspace");
        made.setAttribute("width", SPACES[name]);
        return made;
      }
      return this.operator(name === "|" ? "‖" : name);
    }

    // \frac12 is one over two
    digit() {
      return /^[0-9]$/.test(this.tokens[this.at] || "") ? make("mn", this.tokens[this.at++]) : null;
    }
  }

  const math = (text, display) => {
    const made = make("math", row(new Reader(text).until(undefined)));
    made.setAttribute("display", display);
    return made;
  };
  // a sentence of a docstring: formulas between dollars, code between backticks
  const sentence = (text) =>
    text.split(/\$(.+?)\$/).map((part, at) => (at % 2 ? math(part, "inline") : part.replaceAll("`", "")));
  const plain = (text) => sentence(text).map((part) => part.textContent ?? part).join("");

  return { block: (text) => math(text, "block"), sentence, plain };
})();
