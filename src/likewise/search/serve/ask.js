// Requests to the server: errors as sentences, a token if required, retries if it is busy.

const $ = (id) => document.getElementById(id);
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

export class Fault extends Error {
  constructor(text, status) {
    super(sentence(text));
    this.status = status;
  }
}

const withToken = () => {
  const token = sessionStorage.getItem("likewise-token");
  return token ? { Authorization: `Bearer ${token}` } : {};
};

const send = async (address, options = {}) => {
  for (let attempt = 0; ; attempt++) {
    let answer;
    try {
      answer = await fetch(address, { ...options, headers: { ...options.headers, ...withToken() } });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Fault("The server does not answer. Is likewise serve still running?", 0);
    }
    if (answer.ok) return answer;
    const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
    if (answer.status === 401) {
      await askForToken();
    } else if (answer.status === 429 && attempt < 4) {
      const seconds = Number(answer.headers.get("Retry-After")) || 1;
      await new Promise((done) => setTimeout(done, 1000 * seconds * (0.5 + Math.random())));
    } else {
      throw new Fault(body.error, answer.status);
    }
  }
};

export const ask = async (address, options) => (await send(address, options)).json();

let asking = null;
const askForToken = () => {
  asking ??= new Promise((done) => {
    $("token-fault").hidden = !sessionStorage.getItem("likewise-token");
    $("token-word").value = "";
    $("token").showModal();
    $("token-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem("likewise-token", $("token-word").value);
      $("token").close();
      asking = null;
      done();
    };
  });
  return asking;
};
$("token").addEventListener("cancel", (event) => event.preventDefault());

// Show an image from an address. With a token it is fetched, because an <img> cannot send one; keep: its object URL stays valid.
export const show = async (image, address, keep = false) => {
  if (!sessionStorage.getItem("likewise-token")) {
    image.src = address;
    return;
  }
  try {
    const url = URL.createObjectURL(await (await send(address)).blob());
    if (!keep) image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
    image.src = url;
  } catch {
    image.dispatchEvent(new Event("error"));
  }
};
