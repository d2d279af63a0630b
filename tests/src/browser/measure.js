(async () => {
  await document.fonts.ready;
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  await frame();

  const box = (element) => element.getBoundingClientRect();
  const within = (inner, outer) =>
    inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
    inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

  const visible = (shape) => {
    const { width, height } = box(shape);
    const style = getComputedStyle(shape);
    return (width > 0 || height > 0) && (style.stroke !== "none" || style.fill !== "none");
  };

  const unreadable = (svg) => {
    const found = [];
    const texts = [...svg.querySelectorAll("text")];
    for (const text of texts) {
      if (!within(box(text), box(svg))) found.push(`cut off: ${text.textContent}`);
    }
    // The boxes of slanted texts are larger than the texts.
    const straight = texts.filter((text) => !text.hasAttribute("transform"));
    straight.forEach((text, number) => {
      for (const other of straight.slice(number + 1)) {
        if (meet(box(text), box(other))) found.push(`overlap: ${text.textContent} and ${other.textContent}`);
      }
    });
    return found;
  };

  const chart = (svg) => ({
    title: svg.getAttribute("aria-label") ?? "",
    width: box(svg).width,
    height: box(svg).height,
    shapes: [...svg.querySelectorAll(".line, .fill, .dot")].filter(visible).length,
    values: svg.querySelectorAll(".place > title, .bar > title").length,
    scrolls: svg.parentElement.scrollWidth > svg.parentElement.clientWidth,
    bare: svg.querySelector(".nothing") !== null,
    unreadable: unreadable(svg),
  });

  const root = document.documentElement;
  return {
    charts: [...document.querySelectorAll("svg")].map(chart),
    overflow: root.scrollWidth - root.clientWidth,
    background: getComputedStyle(root).backgroundColor,
  };
})()
