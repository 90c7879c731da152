import { useState } from "react";

/**
 * The key of the request that a form makes: one for each form that was opened. However often it is
 * sent, by a double click or a retry, the server creates one resource.
 */
export function useRequestKey(): string {
  return useState(makeKey)[0];
}

/** `crypto.randomUUID` exists on secure origins only, but a server may be reached by plain HTTP. */
export function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
