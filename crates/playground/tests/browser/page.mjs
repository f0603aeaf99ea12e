// The built page in a real browser: `node page.mjs '{"page": folder, "browser": program, "out": folder, "texts": [[name, text], …]}'`, with npm's packages
// in NODE_PACKAGES. Prints `{"summaries": […], "shown": […]}`; a fault is an exit code other than 0, and its reason on stderr.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";

const require = createRequire(`${process.env.NODE_PACKAGES}/node_modules/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const asked = JSON.parse(process.argv[2]);

const faults = [];
function must(is, words) {
  if (!is) faults.push(words);
}

// any server of static files, and below a folder: the page names nothing by an absolute path
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://page").pathname)).replace(/^\/below\/it\//, "/");
  const file = join(asked.page, path.endsWith("/") ? `${path}index.html` : path);
  if (!request.url.startsWith("/below/it/") || !existsSync(file) || !statSync(file).isFile()) {
    faults.push(`${request.url} was asked for`);
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" }).end(readFileSync(file));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}/below/it/`;
// of a part of a core a browser takes long to start, and a page to answer
const PATIENCE = 120_000;
const browser = await chromium.launch({ executablePath: asked.browser, args: ["--no-sandbox"], timeout: PATIENCE });

/** A page of this width, watched for errors. */
async function open(address, { width = 1400, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`${width} ${scheme}: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && faults.push(`${width} ${scheme}: ${message.text()}`));
  await page.goto(url + address);
  await page.waitForFunction(() => !document.getElementById("run").disabled);
  return page;
}
const said = (page) => page.locator("#status").innerText();
const until = (page, words) => page.waitForFunction((part) => document.getElementById("status").textContent.includes(part), words);

/** A run from an address; the bytes of its summary. */
async function summaries() {
  const found = [];
  const page = await open("");
  await page.selectOption("#speed", "max");
  for (const [name, text] of asked.texts) {
    await page.evaluate(([toml, file]) => { location.hash = `#toml=${encodeURIComponent(toml)}&name=${encodeURIComponent(file)}&play`; }, [text, name]);
    await page.waitForFunction((toml) => document.getElementById("text").value === toml, text);
    await until(page, "Done");
    found.push(await page.evaluate(async () => (await fetch(document.querySelector("#outcome-files a[download^=summary]").href)).text()));
    await page.evaluate(() => { document.getElementById("status").textContent = document.getElementById("status").lastText = ""; });
  }
  await page.context().close();
  return found;
}

/** Queues fill and drain, the charts have ink, pause stops time. */
async function moves() {
  const page = await open("#example=dumbbell");
  await page.locator("#text").focus();
  await page.keyboard.press("Control+Enter");
  const seen = new Set();
  for (let i = 0; i < 600 && seen.size < 6; i += 1) {
    await page.waitForTimeout(100);
    for (const scale of await page.$$eval(".tank .fill", (fills) => fills.map((fill) => fill.style.transform))) {
      if (scale !== "scaleX(0)") seen.add(scale);
    }
  }
  must(seen.size >= 6, `queues were seen at ${seen.size} lengths`);
  await page.keyboard.press("Escape");
  await until(page, "Paused");
  // what came before the pause is drawn in the next frame, on a busy machine later than it is said
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const at = await page.locator("#at-time").innerText();
  await page.waitForTimeout(400);
  must((await page.locator("#at-time").innerText()) === at, "time goes on in a pause");
  must((await page.locator("#pause").innerText()) === "Resume", "the button says that it resumes");
  const flows = await page.locator("#states tr").count();
  must(flows >= 1, `${flows} flows in the table`);
  const ink = await page.$$eval(".plot canvas", (all) => all.map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0;
    for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
    return inked;
  }));
  must(ink.length === 3 && ink.every((inked) => inked > 500), `charts have ${ink} inked points`);
  await page.locator(".tank").first().hover();
  must(/packets/.test(await page.locator("#network-said").innerText()), "a queue that is pointed at is said");
  await page.locator("#stop").click();
  await until(page, "Stopped");
  await page.context().close();
}

/** A mistake is shown at its place, in the text and in words. */
async function mistake() {
  const page = await open("#example=dumbbell");
  const text = await page.locator("#text").inputValue(), bad = text.replace('"cubic"', '"cubik"');
  const line = 1 + bad.split("\n").findIndex((one) => one.includes("cubik"));
  await page.locator("#text").fill(bad);
  await page.waitForSelector("#mistakes p");
  must((await page.locator(".gutter .wrong").allInnerTexts()).join() === String(line), "the line's number is marked");
  must((await page.locator(".t-wrong").innerText()).includes("cubik"), "the line is marked");
  const words = await page.locator("#mistakes").innerText();
  must(words.includes(`line ${line}`) && words.includes("cubic"), `the mistake is said: ${words}`);
  await page.locator("#mistakes button").first().click();
  const caret = await page.$eval("#text", (area) => area.value.slice(0, area.selectionStart).split("\n").length);
  must(caret === line, `the caret goes to line ${caret}, not ${line}`);
  must((await page.getAttribute("#text", "aria-invalid")) === "true", "the text is marked as invalid");
  await page.screenshot({ path: `${asked.out}/mistake.png` });
  // a choice of another algorithm mends it
  await page.selectOption("#cc-0", "vegas");
  await page.waitForFunction(() => document.querySelectorAll("#mistakes p").length === 0);
  must((await page.locator("#text").inputValue()).includes('cc = "vegas"'), "the choice is in the text");
  // a link holds all of it
  await page.locator("#share").click();
  await until(page, "The link");
  const shared = page.url().slice(url.length), whole = await page.locator("#text").inputValue();
  must(shared.startsWith("#scenario="), `the address is ${shared.slice(0, 20)}…`);
  const other = await open(shared);
  await other.waitForFunction((toml) => document.getElementById("text").value === toml, whole);
  await other.context().close();
  await page.context().close();
  const embedded = await open("?embed#example=dumbbell");
  must(!(await embedded.locator("header").isVisible()) && !(await embedded.locator("footer").isVisible()), "an embedded page has neither header nor footer");
  await embedded.context().close();
}

/** Pictures at both widths, light and dark, and what axe finds. */
async function look() {
  const shown = [];
  for (const [width, height] of [[1400, 900], [400, 850]]) {
    for (const scheme of ["light", "dark"]) {
      const page = await open("#example=dumbbell", { width, height, scheme });
      await page.locator("#run").click();
      await page.waitForTimeout(4000);
      const name = `${width} ${scheme}`;
      await page.screenshot({ path: `${asked.out}/playground-${width}-${scheme}.png`, fullPage: true });
      await page.selectOption("#speed", "max");
      await until(page, "Done");
      const [inner, scroll] = await page.evaluate(() => [innerWidth, document.scrollingElement.scrollWidth]);
      must(scroll <= inner, `${name}: the page is ${scroll} wide in a window of ${inner}`);
      await page.screenshot({ path: `${asked.out}/playground-${width}-${scheme}-done.png`, fullPage: true });
      await page.evaluate(axe);
      const results = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      for (const { id, impact, nodes } of results.violations) {
        shown.push(`${name}: ${impact}: ${id} (${nodes.length}): ${nodes[0].target.join(" ")}`);
        must(!["serious", "critical"].includes(impact), `axe, ${name}: ${impact}: ${id}: ${nodes[0].target.join(" ")} ${nodes[0].failureSummary?.split("\n")[1]?.trim() ?? ""}`);
      }
      must(results.passes.length > 20, `axe looked at ${results.passes.length} rules`);
      await page.context().close();
    }
  }
  return shown;
}

mkdirSync(asked.out, { recursive: true });
const found = { summaries: [], shown: [] };
try {
  await moves();
  await mistake();
  found.summaries = await summaries();
  found.shown = await look();
} catch (error) {
  faults.push(error.stack);
}
await browser.close();
server.close();
if (faults.length) {
  console.error(faults.join("\n"));
  process.exit(1);
}
console.log(JSON.stringify(found));
