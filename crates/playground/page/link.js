// A scenario in the fragment of an address: it is never sent to a server.
//   #scenario=…   deflate (raw), base64url      #toml=…   encodeURIComponent      #example=dumbbell
//   &name=dumbbell.toml   &run=2, from 0   &play, to run it at once

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  // in parts: a call takes only so many arguments
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpacked(code) {
  const bytes = Uint8Array.from(atob(code.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

/** What an address asks for: `{ text?, name, example?, run, play }`. */
export async function asked(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const found = { name: fields.get("name") ?? "scenario.toml", example: fields.get("example"), run: Number(fields.get("run") ?? 0), play: fields.has("play") };
  if (fields.has("scenario")) found.text = await unpacked(fields.get("scenario"));
  else if (fields.has("toml")) found.text = fields.get("toml");
  return found;
}

/** The address of a scenario. */
export async function address(text, name, run) {
  const url = new URL(location.href);
  url.search = "";
  const fields = new URLSearchParams({ scenario: await packed(text), name });
  if (run > 0) fields.set("run", run);
  url.hash = fields.toString();
  return url.href;
}
