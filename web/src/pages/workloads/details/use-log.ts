import { useEffect, useState } from "react";
import { type Collection, part, workloadPath } from "../api/queries";
import { appendText, EMPTY_LOG, type LogBuffer } from "./log-buffer";

export function logPath(
  collection: Collection,
  namespace: string,
  name: string,
  container: string,
): string {
  return `${workloadPath(collection, namespace, name)}/containers/${part(container)}/log`;
}

/**
 * Follow a log while the page is open. A lost connection goes on where it broke off: the browser
 * sends the position of the last event. Parts are collected for one frame, so that a fast log costs
 * one update of the page per frame.
 */
export function useLog(path: string): { log: LogBuffer; ended: boolean; failed: boolean } {
  const [log, setLog] = useState(EMPTY_LOG);
  const [ended, setEnded] = useState(false);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    setLog(EMPTY_LOG);
    setEnded(false);
    setFailed(false);
    const source = new EventSource(path);
    let waiting = "";
    let frame = 0;
    const flush = () => {
      frame = 0;
      const text = waiting;
      waiting = "";
      setLog((before) => appendText(before, text));
    };
    source.onmessage = (event) => {
      setFailed(false);
      waiting += JSON.parse(event.data).text ?? "";
      frame ||= requestAnimationFrame(flush);
    };
    source.addEventListener("end", () => {
      setEnded(true);
      source.close();
    });
    source.onerror = () => setFailed(source.readyState === EventSource.CLOSED);
    return () => {
      source.close();
      if (frame) cancelAnimationFrame(frame);
    };
  }, [path]);
  return { log, ended, failed };
}
