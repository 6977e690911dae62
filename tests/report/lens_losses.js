// Three losses of the lens's contract, written by hand and in the plainest way: what the page's tests compare with.
const LENS = (() => {
  const units = (x, n, d) => {
    const u = new Float64Array(n * d), norms = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      let square = 0;
      for (let k = 0; k < d; k++) square += x[i * d + k] ** 2;
      norms[i] = Math.sqrt(square) || Infinity;
      for (let k = 0; k < d; k++) u[i * d + k] = x[i * d + k] / norms[i];
    }
    return { u, norms };
  };
  const products = (a, b, m, n, d) => {
    const s = new Float64Array(m * n);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) for (let k = 0; k < d; k++) s[i * n + j] += a.u[i * d + k] * b.u[j * d + k];
    return s;
  };
  // the gradient of rows, or of columns, through cosines
  const back = (a, b, s, derivatives, m, n, d, columns) => {
    const gradient = new Float64Array((columns ? n : m) * d);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        const [own, at, other, from] = columns ? [b, j, a, i] : [a, i, b, j];
        for (let k = 0; k < d; k++)
          gradient[at * d + k] += (derivatives[i * n + j] * (other.u[from * d + k] - s[i * n + j] * own.u[at * d + k])) / own.norms[at];
      }
    return gradient;
  };
  const pairs = (about, formula, parameters, weigh) => ({
    about, cite: null, formula, similarity: "cosine", centers: 0, parameters, exact: true,
    run(x, labels, n, d, proxies, classes, values) {
      const a = units(x, n, d), s = products(a, a, n, n, d), derivatives = new Float64Array(n * n);
      const value = weigh(s, derivatives, labels, n, values);
      const gradient = back(a, a, s, derivatives, n, n, d, false), other = back(a, a, s, derivatives, n, n, d, true);
      for (let i = 0; i < n * d; i++) gradient[i] += other[i];
      return { value, matrices: [{ between: "samples against samples", rows: n, columns: n, s, derivatives }], gradient, proxyGradient: null };
    },
  });
  const slider = (name, help, value, least, most, log = false) => ({ name, help, value, least, most, log, whole: false, choices: null });

  // each mean over the pairs that cost something
  const contrastive = (s, derivatives, labels, n, [near, far]) => {
    const [gaps, counts] = [new Float64Array(n * n), [0, 0]];
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        const same = labels[i] === labels[j];
        const gap = i === j ? 0 : same ? near - s[i * n + j] : s[i * n + j] - far;
        if (gap > 0) [gaps[i * n + j], counts[+same]] = [gap, counts[+same] + 1];
      }
    let value = 0;
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        if (!gaps[i * n + j]) continue;
        const same = labels[i] === labels[j];
        value += gaps[i * n + j] / counts[+same];
        derivatives[i * n + j] = (same ? -1 : 1) / counts[+same];
      }
    return value;
  };
  const multiSimilarity = (s, derivatives, labels, n, [alpha, beta, base]) => {
    let value = 0;
    for (let i = 0; i < n; i++) {
      let [near, far] = [1, 1];
      for (let j = 0; j < n; j++) {
        if (i === j) continue;
        if (labels[i] === labels[j]) near += Math.exp(-alpha * (s[i * n + j] - base));
        else far += Math.exp(beta * (s[i * n + j] - base));
      }
      value += (Math.log(near) / alpha + Math.log(far) / beta) / n;
      for (let j = 0; j < n; j++) {
        if (i === j) continue;
        const same = labels[i] === labels[j];
        derivatives[i * n + j] = same ? -Math.exp(-alpha * (s[i * n + j] - base)) / near / n : Math.exp(beta * (s[i * n + j] - base)) / far / n;
      }
    }
    return value;
  };
  const proxyAnchor = {
    about: "Each proxy is an anchor that gathers its class and pushes the others away.", cite: "Kim et al. 2020",
    formula: "\\frac{1}{|P^+|}\\sum_{p\\in P^+}\\log\\Bigl(1+\\sum_{x\\in X_p^+}e^{-\\alpha(s(x,p)-\\delta)}\\Bigr)",
    similarity: "cosine", centers: 1, exact: true,
    parameters: [slider("margin", "the margin", 0.1, 0, 0.5), slider("alpha", "the scale", 32, 4, 128, true)],
    run(x, labels, n, d, proxies, classes, [margin, alpha]) {
      const a = units(proxies, classes, d), b = units(x, n, d), s = products(a, b, classes, n, d), derivatives = new Float64Array(classes * n);
      const present = new Set(labels.slice(0, n)).size;
      let value = 0;
      for (let c = 0; c < classes; c++) {
        let [near, far] = [1, 1];
        for (let j = 0; j < n; j++) {
          if (labels[j] === c) near += Math.exp(-alpha * (s[c * n + j] - margin));
          else far += Math.exp(alpha * (s[c * n + j] + margin));
        }
        value += Math.log(near) / present + Math.log(far) / classes;
        for (let j = 0; j < n; j++)
          derivatives[c * n + j] =
            labels[j] === c
              ? (-alpha * Math.exp(-alpha * (s[c * n + j] - margin))) / near / present
              : (alpha * Math.exp(alpha * (s[c * n + j] + margin))) / far / classes;
      }
      return {
        value, matrices: [{ between: "proxies against samples", rows: classes, columns: n, s, derivatives }],
        gradient: back(a, b, s, derivatives, classes, n, d, true), proxyGradient: back(a, b, s, derivatives, classes, n, d, false),
      };
    },
  };
  return {
  "Contrastive": { kind: "ContrastiveLoss", ...pairs("Positive pairs closer than one margin, negative pairs further than another.",
    "\\frac{1}{|\\mathcal P|}\\sum_{(i,j)\\in\\mathcal P}[m_+ - s_{ij}]_+", [slider("positive_margin", "how close", 1, 0, 1), slider("negative_margin", "how far", 0.5, -1, 1)], contrastive) },
  "Multi-similarity": { kind: "MultiSimilarityLoss", ...pairs("Soft weights from three similarities.",
    "\\frac1\\alpha\\log\\Bigl[1+\\sum_{k\\in P_i}e^{-\\alpha(s_{ik}-\\lambda)}\\Bigr]", [slider("alpha", "how sharply positives are weighed", 2, 0.1, 100, true), slider("beta", "how sharply negatives are weighed", 50, 1, 100, true), slider("base", "the similarity λ that divides them", 0.5, -1, 1)], multiSimilarity) },
  "Proxy-Anchor": { kind: "ProxyAnchorLoss", ...proxyAnchor },
  };
})();
