// Requests to this server, and why one has no answer.

/** Why there is no answer: the parts of the server's error, and the status (0: no server). */
export class NoAnswer extends Error {
  constructor(status, parts) {
    super(parts.got);
    this.status = status;
    this.parts = parts;
  }
}

/** The JSON of a path. Throws a NoAnswer, or an AbortError if the request was aborted. */
export async function answer(path, words = "", signal = undefined) {
  let response;
  try {
    response = await fetch(words ? `${path}?${words}` : path, { signal });
    if (response.ok) return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new NoAnswer(0, {
      got: "no answer",
      where: "this page's server",
      hint: "start it again with `streammetrics serve`; the page continues by itself",
    });
  }
  throw new NoAnswer(response.status, await partsOf(response));
}

async function partsOf(response) {
  try {
    const { error } = await response.json();
    if (error?.got) return error;
  } catch {
    // Not JSON: from a proxy before the server, or from the middleware. The status says enough.
  }
  return { got: `status ${response.status}` };
}
