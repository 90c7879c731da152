/** The command that sends a request to this server: with the token of the variable, or that of the project. */
export function curlCommand(path: string, body: object, origin = window.location.origin): string {
  const json = JSON.stringify(body).replaceAll("'", "'\\''");
  const token = `\${CLEW_TOKEN:-$(cat .clew/token)}`;
  return `curl -H "Authorization: Bearer ${token}" --json '${json}' '${origin}${path}'`;
}
