// The dashboard in a real browser: `node page.mjs WHAT '{"url": …, "browser": …, "out": …, "token": …}'`, with the packages beside it or in NODE_PACKAGES.
// Prints a JSON object; a fault is an exit code other than 0, and its reason on stderr.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";

const require = createRequire(`${process.env.NODE_PACKAGES ?? import.meta.dirname}/node_modules/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [what, json] = process.argv.slice(2);
const asked = JSON.parse(json);

const faults = [];
function must(is, words) {
  if (!is) faults.push(words);
}

// of a part of a core a browser takes long to start, and a page to answer
const PATIENCE = 120_000;
const browser = await chromium.launch({ executablePath: asked.browser, args: ["--no-sandbox"], timeout: PATIENCE });

/** A page of this width, watched for errors. */
async function open({ width = 1400, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, bypassCSP: false });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`${width} ${scheme}: ${error.message}`));
  page.on("console", (message) => {
    // an action that is refused on purpose is an error to the console
    if (message.type() === "error" && !/status of 40[139]|net::ERR_/.test(message.text())) faults.push(`${width} ${scheme}: ${message.text()}`);
  });
  await page.goto(asked.url);
  await page.waitForSelector("#hosts .rows .row");
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();

/** Pictures at both widths, light and dark, and what axe finds. */
async function look() {
  mkdirSync(asked.out, { recursive: true });
  const found = {};
  for (const [width, height] of [[1400, 900], [400, 850]]) {
    for (const scheme of ["light", "dark"]) {
      const page = await open({ width, height, scheme });
      await page.waitForTimeout(asked.settle ?? 2500);
      const [inner, scroll] = await page.evaluate(() => [innerWidth, document.scrollingElement.scrollWidth]);
      must(scroll <= inner, `the page is ${scroll} wide in a window of ${inner}`);
      await page.evaluate(() => { document.querySelector("details").open = true; });
      await page.screenshot({ path: `${asked.out}/dash-${width}-${scheme}.png`, fullPage: true });
      // by CDP, past the page's own rules for scripts
      await page.evaluate(axe);
      const results = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      const name = `${width} ${scheme}`;
      found[name] = results.violations.map(({ id, impact, nodes }) => `${impact}: ${id} (${nodes.length}): ${nodes[0].target.join(" ")} ${nodes[0].failureSummary?.split("\n")[1]?.trim() ?? ""}`);
      for (const { id, impact } of results.violations) must(!["serious", "critical"].includes(impact), `axe, ${name}: ${impact}: ${id}`);
      must(results.passes.length > 20, `axe looked at ${results.passes.length} rules`);
      await page.context().close();
    }
  }
  return { axe: found };
}

/** Everything by keys. */
async function keys() {
  const page = await open();
  await page.keyboard.press("Tab");
  must(await page.evaluate(() => document.activeElement.className === "skip"), "the first Tab leads to the link past the head");
  await page.keyboard.press("Enter");
  must(await page.evaluate(() => document.activeElement.id === "main"), "and from there to the fleet");
  const stops = new Set();
  for (let i = 0; i < 80; i += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const at = document.activeElement, seen = getComputedStyle(at).outlineStyle !== "none";
      return [at.id || at.className || at.tagName, at.getAttribute("role"), seen].join(" ");
    });
    stops.add(stop);
    must(!stop.endsWith("false") || stop.startsWith("BODY"), `the focus cannot be seen at ${stop}`);
    if (stop.startsWith("BODY")) break;
  }
  for (const part of ["map-by", "rack", "time-span", "hosts-filter", "grid", "events"]) must([...stops].some((stop) => stop.startsWith(part)), `Tab does not reach ${part}: ${[...stops].join("; ")}`);
  // a rack lists its hosts
  const racks = page.locator("#map-racks button");
  await racks.first().focus();
  await page.keyboard.press("End");
  const label = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  must(/host/.test(label), `the last rack says what it has: ${label}`);
  await page.keyboard.press("Enter");
  const filter = await page.inputValue("#hosts-filter");
  must(filter && label.startsWith(filter), `Enter lists its hosts: ${filter}`);
  must(await page.evaluate(() => document.activeElement.getAttribute("role") === "grid"), "and goes there");
  await page.fill("#hosts-filter", "");
  await page.locator("#hosts .grid").focus();
  await page.keyboard.press("End");
  const [rows, active] = await page.locator("#hosts .grid").evaluate((grid) => [Number(grid.getAttribute("aria-rowcount")), document.getElementById(grid.getAttribute("aria-activedescendant"))?.getAttribute("aria-rowindex")]);
  must(rows === Number(active), `End goes to row ${rows}, not ${active}`);
  await page.keyboard.press("Enter");
  must(await page.locator("#host").isVisible(), "Enter shows more of a host");
  const drawn = await page.locator("#hosts .rows .row").count();
  must(drawn < 60, `${drawn} rows are in the page`);
  // colours by the button
  const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.locator("#theme").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  const dark = await page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
  must(dark[0] === "dark" && dark[1] !== before, `the button makes it dark: ${dark}`);
  const state = await text(page, "#state");
  return { stops: stops.size, rows, state };
}

/** Pause and resume, with a wrong token and the right one; without a token nothing can be done. */
async function act() {
  const page = await open();
  if (!asked.token) {
    must(await page.locator("#actions").isHidden(), "there is nothing to press");
    must(await page.locator("#readonly").isVisible(), "the page says that it is read-only");
    const response = await page.request.post(`${asked.url}api/pause`, { data: {}, headers: { Authorization: "Bearer 0123456789abcdef" } });
    must(response.status() === 403, `a pause is refused: ${response.status()}`);
    return { why: (await response.json()).why };
  }
  await page.click("#actions");
  await page.fill("#token", "wrong wrong wrong wrong");
  await page.click("#pause");
  await page.waitForFunction(() => document.getElementById("acted").textContent.includes("not right"));
  must(!(await text(page, "#state")).includes("paused"), "a wrong token pauses nothing");
  await page.fill("#token", asked.token);
  await page.click("#pause");
  await page.waitForFunction(() => document.getElementById("acted").textContent.startsWith("Paused"));
  await page.waitForFunction(() => document.getElementById("state").textContent.includes("paused by an operator"));
  const said = await text(page, "#acted");
  mkdirSync(asked.out, { recursive: true });
  await page.screenshot({ path: `${asked.out}/dash-actions.png` });
  await page.evaluate(axe);
  const results = await page.evaluate(() => globalThis.axe.run(document.getElementById("acting")));
  for (const { id, impact } of results.violations) must(!["serious", "critical"].includes(impact), `axe, the dialog: ${impact}: ${id}`);
  await page.click("#compare");
  await page.waitForFunction(() => /Compared|before/.test(document.getElementById("acted").textContent));
  const compared = `${await text(page, "#compared")} ${await text(page, "#acted")}`;
  await page.click("#resume");
  await page.waitForFunction(() => document.getElementById("acted").textContent.startsWith("Resumed"));
  await page.waitForFunction(() => !document.getElementById("state").textContent.includes("paused by an operator"));
  return { said, compared };
}

/** The Oracle goes, which the page says, and comes back. Prints a line when it has seen that it is gone. */
async function gone() {
  const page = await open();
  console.log(JSON.stringify({ at: "open" }));
  await page.waitForSelector("#trouble:not([hidden])");
  const words = await text(page, "#trouble");
  console.log(JSON.stringify({ at: "gone", words }));
  await page.waitForSelector("#trouble", { state: "hidden" });
  return { at: "back", words };
}

/** What the browser's processes take of one core while the page follows. */
async function cost() {
  const page = await open();
  const session = await browser.newBrowserCDPSession();
  const taken = async () => (await session.send("SystemInfo.getProcessInfo")).processInfo;
  // updates are counted here, by a stream of this process: that costs the browser nothing
  let updates = 0;
  const counting = new AbortController();
  const stream = await fetch(`${asked.url}events`, { signal: counting.signal });
  (async () => {
    let rest = "";
    for await (const part of stream.body.pipeThrough(new TextDecoderStream())) {
      const text = rest + part;
      updates += text.split('"point":').length - 1;
      rest = text.slice(-7);
    }
  })().catch(() => {});
  await page.waitForTimeout(3000);
  const before = await taken(), begin = performance.now(), counted = updates;
  await page.waitForTimeout((asked.seconds ?? 20) * 1000);
  const after = await taken(), took = (performance.now() - begin) / 1000, rate = (updates - counted) / took;
  counting.abort();
  const by = {};
  for (const { id, type, cpuTime } of after) {
    const was = before.find((one) => one.id === id)?.cpuTime ?? 0;
    by[type] = (by[type] ?? 0) + (cpuTime - was) / took;
  }
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  const hosts = await page.locator("#hosts .grid").getAttribute("aria-rowcount");
  return { updates_per_s: rate, share_of_a_core: Object.values(by).reduce((a, b) => a + b, 0), by, nodes, hosts: Number(hosts) - 1 };
}

try {
  const done = await { look, keys, act, gone, cost }[what]();
  console.log(JSON.stringify(done));
} catch (error) {
  faults.push(error.stack);
}
await browser.close();
for (const fault of faults) console.error(fault);
process.exitCode = faults.length ? 1 : 0;
