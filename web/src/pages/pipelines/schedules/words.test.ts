import { expect, test } from "vitest";
import { cronWords, intervalWords, whenWords } from "./words";

test.each([
  [1, "every second"],
  [60, "every minute"],
  [300, "every 5 minutes"],
  [3600, "every hour"],
  [5400, "every 1 hour 30 minutes"],
  [86_400, "every day"],
  [604_800, "every week"],
  [90_061, "every 1 day 1 hour 1 minute 1 second"],
])("says an interval of %i s", (seconds, words) => {
  expect(intervalWords(seconds)).toBe(words);
});

test.each([
  ["0 30 9 * * MON-FRI", "every Monday to Friday at 09:30 UTC"],
  ["0 0 9 * * *", "every day at 09:00 UTC"],
  ["0 0 9,17 * * ?", "every day at 09:00 and 17:00 UTC"],
  ["15 0 9 * * *", "every day at 09:00:15 UTC"],
  ["0 0 9 * * 1,3", "every Monday and Wednesday at 09:00 UTC"],
  ["0 0 9 * * 7", "every Sunday at 09:00 UTC"],
  ["0 0 0 1 * *", "on day 1 of every month at 00:00 UTC"],
  ["0 0 6 1,15 1,7 *", "on days 1 and 15 of January and July at 06:00 UTC"],
  ["0 0 6 L * *", "on the last day of every month at 06:00 UTC"],
  ["0 0 6 * JUN-AUG *", "every day in June to August at 06:00 UTC"],
  ["0 0 * * * *", "every hour"],
  ["0 5 * * * *", "every hour at minute 5"],
  ["0 0 */6 * * *", "every 6 hours"],
  ["0 */15 * * * *", "every 15 minutes"],
  ["0 * * * * *", "every minute"],
  ["*/10 * * * * *", "every 10 seconds"],
  ["* * * * * *", "every second"],
  ["0 */15 * * * MON", "every 15 minutes, every Monday"],
  ["@daily", "every day at 00:00 UTC"],
  ["@hourly", "every hour"],
  ["@weekly", "every Sunday at 00:00 UTC"],
  ["@every 1h30m", "every 1 hour 30 minutes"],
])("says %s in words", (cron, words) => {
  expect(cronWords(cron)).toBe(words);
});

test.each(["0 0 9 13 * FRI", "0 0 9-17 * * *", "0 0 9 ? * 1#2", "30 9 * * *", "@every x", "x"])(
  "shows %s as it is",
  (cron) => {
    expect(cronWords(cron)).toBe(`cron ${cron}`);
  },
);

test("says when, seen from now", () => {
  const now = new Date(2026, 10, 18, 20, 0);
  const at = (...parts: [number, number, number, number, number]) =>
    new Date(...parts).toISOString();
  expect(whenWords(new Date(now.getTime() + 30_000).toISOString(), now)).toBe("in 30 seconds");
  expect(whenWords(at(2026, 10, 18, 21, 30), now)).toMatch(/^today at .*9|21:30/);
  expect(whenWords(at(2026, 10, 19, 0, 30), now)).toMatch(/^tomorrow at /);
  expect(whenWords(at(2027, 0, 1, 0, 30), now)).toContain("2027");
});
