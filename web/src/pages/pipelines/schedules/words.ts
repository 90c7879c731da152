const UNITS: [number, string][] = [
  [7 * 24 * 3600, "week"],
  [24 * 3600, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];
const DESCRIPTORS: Record<string, string> = {
  "@yearly": "0 0 0 1 1 *",
  "@annually": "0 0 0 1 1 *",
  "@monthly": "0 0 0 1 * *",
  "@weekly": "0 0 0 * * 0",
  "@daily": "0 0 0 * * *",
  "@midnight": "0 0 0 * * *",
  "@hourly": "0 0 * * * *",
};
const ANY = new Set(["*", "?"]);

/** `5400` is “every hour 30 minutes”, `3600` is “every hour”. */
export function intervalWords(seconds: number): string {
  const words: string[] = [];
  let left = Math.floor(seconds);
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) words.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
  }
  const [only] = words;
  if (words.length === 1 && only?.startsWith("1 ")) return `every ${only.slice(2)}`;
  return `every ${words.join(" ") || "second"}`;
}

/** A cron expression in words, in UTC; the expression itself if it is not a usual one. */
export function cronWords(cron: string): string {
  const text = cron.trim();
  const every = /^@every\s+(.+)$/.exec(text);
  if (every?.[1]) return everyWords(every[1]) ?? `cron ${text}`;
  const fields = (DESCRIPTORS[text] ?? text).split(/\s+/);
  if (fields.length !== 6) return `cron ${text}`;
  const [second, minute, hour, day, month, weekday] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const time = timeWords(second, minute, hour);
  const date = dateWords(day, month, weekday);
  if (time === null || date === null) return `cron ${text}`;
  if (date !== "") return time.startsWith("at ") ? `${date} ${time}` : `${time}, ${date}`;
  return time.startsWith("at ") ? `every day ${time}` : time;
}

function everyWords(duration: string): string | null {
  const sizes: Record<string, number> = { h: 3600, m: 60, s: 1 };
  const found = [...duration.matchAll(/(\d+)(h|m|s)/g)];
  if (!found.length || found.map(([all]) => all).join("") !== duration) return null;
  const seconds = found.reduce((sum, [, n, unit]) => sum + Number(n) * (sizes[unit ?? ""] ?? 0), 0);
  return intervalWords(Math.max(1, seconds));
}

function timeWords(second: string, minute: string, hour: string): string | null {
  const step = (field: string) => /^(?:\*|0)\/(\d+)$/.exec(field)?.[1];
  if (isNumber(second) && isNumber(minute) && /^\d+(,\d+)*$/.test(hour)) {
    const times = hour.split(",").map((h) => clock(h, minute, second));
    return `at ${join(times)} UTC`;
  }
  if (isNumber(second) && isNumber(minute) && (ANY.has(hour) || step(hour))) {
    const past = Number(minute) === 0 ? "" : ` at minute ${Number(minute)}`;
    const hours = step(hour);
    return hours && Number(hours) > 1 ? `every ${hours} hours${past}` : `every hour${past}`;
  }
  if (isNumber(second) && ANY.has(hour)) {
    if (ANY.has(minute)) return "every minute";
    const minutes = step(minute);
    if (minutes) return Number(minutes) === 1 ? "every minute" : `every ${minutes} minutes`;
  }
  if (ANY.has(minute) && ANY.has(hour)) {
    if (ANY.has(second)) return "every second";
    const seconds = step(second);
    if (seconds) return Number(seconds) === 1 ? "every second" : `every ${seconds} seconds`;
  }
  return null;
}

function dateWords(day: string, month: string, weekday: string): string | null {
  const months = ANY.has(month) ? "" : namesOf(month, MONTHS, 1);
  if (months === null) return null;
  const inMonths = months ? ` of ${months}` : " of every month";
  if (ANY.has(day) && ANY.has(weekday)) return months ? `every day in ${months}` : "";
  if (ANY.has(day)) {
    const days = namesOf(weekday, DAYS, 0);
    if (days === null) return null;
    return `every ${days}${months ? ` in ${months}` : ""}`;
  }
  if (!ANY.has(weekday)) return null;
  if (day === "L") return `on the last day${inMonths}`;
  if (!/^\d+(,\d+)*$/.test(day)) return null;
  const days = day.split(",");
  return `on ${days.length === 1 ? "day" : "days"} ${join(days)}${inMonths}`;
}

/** `MON-FRI` is “Monday to Friday”, `1,3` “Monday and Wednesday”. */
function namesOf(field: string, names: string[], first: number): string | null {
  const words = field.split(",").map((item) => {
    const ends = item.split("-").map((end) => nameOf(end, names, first));
    if (ends.length > 2 || ends.some((end) => end === null)) return null;
    return ends.join(" to ");
  });
  return words.some((word) => word === null) ? null : join(words as string[]);
}

function nameOf(text: string, names: string[], first: number): string | null {
  if (/^\d+$/.test(text)) {
    const index = Number(text) - first;
    return names[names.length === DAYS.length && index === DAYS.length ? 0 : index] ?? null;
  }
  const short = text.toLowerCase();
  return (short.length >= 3 && names.find((name) => name.toLowerCase().startsWith(short))) || null;
}

function isNumber(field: string): boolean {
  return /^\d{1,2}$/.test(field);
}

function clock(hour: string, minute: string, second: string): string {
  const two = (text: string) => text.padStart(2, "0");
  return `${two(hour)}:${two(minute)}${Number(second) ? `:${two(second)}` : ""}`;
}

function join(words: string[]): string {
  return words.length < 2
    ? (words[0] ?? "")
    : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** “tomorrow at 09:00”, in the time zone of the browser; relative to `now`. */
export function whenWords(at: string, now: Date = new Date()): string {
  const time = new Date(at);
  const midnight = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());
  const days = Math.round((midnight(time).getTime() - midnight(now).getTime()) / 86_400_000);
  const hour = time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const seconds = Math.round((time.getTime() - now.getTime()) / 1000);
  if (seconds > 0 && seconds < 90) return `in ${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  if (days === 0) return `today at ${hour}`;
  if (days === 1) return `tomorrow at ${hour}`;
  const year = time.getFullYear() === now.getFullYear() ? undefined : "numeric";
  const date = time.toLocaleDateString(undefined, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year,
  } as Intl.DateTimeFormatOptions);
  return `${date} at ${hour}`;
}
