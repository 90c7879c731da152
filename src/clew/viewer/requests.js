// Requests to the server: the files of the volume are below files/, by their paths.

export class RequestError extends Error {
  constructor(status, message, headers) { super(message); this.status = status; this.headers = headers; }
}

export async function request(path, { query = "", ...more } = {}) {
  const answer = await fetch(`files/${path}${query}`, more);
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new RequestError(answer.status, problem.title ?? `${answer.status} ${answer.statusText}`, answer.headers);
  }
  return answer;
}
