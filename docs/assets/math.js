// Renders the formulas that pymdownx.arithmatex marked, on the first page and on every page that follows it without
// a reload. KaTeX lies beside this file, so that the pages need no network.
document$.subscribe(({ body }) => {
  for (const formula of body.querySelectorAll(".arithmatex")) {
    renderMathInElement(formula, {
      delimiters: [
        { left: "\\(", right: "\\)", display: false },
        { left: "\\[", right: "\\]", display: true },
      ],
      throwOnError: false,
    })
  }
})
