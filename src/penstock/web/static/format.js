// SPDX-License-Identifier: MIT
// Quantities in words, in the units of penstock's own tables.

const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// Axes that are at least this long have dates (s).
const LONG_S = 6 * 3600;

function scaled(amount, base) {
  let power = 0;
  while (amount >= base && power < DECIMAL.length - 1) {
    amount /= base;
    power += 1;
  }
  return [amount, power];
}

// People write few digits: 2**23 is 8 MiB, 1e8 is 100 MB.
export function isBinary(amount) {
  if (!amount) return false;
  const written = (base) => String(Number(scaled(amount, base)[0].toPrecision(12)));
  const binary = written(1024);
  return binary.length < written(1000).length && binary.length <= 7;
}

function digits(number) {
  return String(Number(number.toPrecision(4)));
}

// An amount of bytes; `like` is an amount whose units are taken, binary or decimal.
export function volume(bytes, like = bytes) {
  const binary = isBinary(like);
  const [number, power] = scaled(bytes, binary ? 1024 : 1000);
  return `${digits(number)} ${(binary ? BINARY : DECIMAL)[power]}B`;
}

export function rate(bytesPerSecond, like = bytesPerSecond) {
  return `${volume(bytesPerSecond, like)}/s`;
}

// Round amounts from 0 up to `most`, for an axis, in the units of `like`.
export function roundSteps(most, like = most) {
  const base = isBinary(like) ? 1024 : 1000;
  const [number, power] = scaled(most, base);
  const size = 10 ** Math.floor(Math.log10(number));
  const step = [0.2, 0.5, 1, 2, 5].map((digit) => digit * size)
    .find((each) => number / each <= 4);
  const count = Math.floor(number / step + 1e-9);
  return Array.from({ length: count + 1 },
    (_, at) => Number((at * step).toPrecision(12)) * base ** power);
}

export function duration(seconds) {
  if (seconds > 0 && seconds < 1e-3) return `${digits(1e6 * seconds)} µs`;
  if (seconds > 0 && seconds < 0.1) return `${digits(1e3 * seconds)} ms`;
  if (seconds < 120) return `${digits(seconds)} s`;
  if (seconds < 7200) return `${digits(seconds / 60)} min`;
  if (seconds < 172800) return `${digits(seconds / 3600)} h`;
  return `${digits(seconds / 86400)} d`;
}

// The date and the time of day of this machine, as YYYY-MM-DD HH:MM:SS.
export function instant(seconds) {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())];
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two);
  return `${day.join("-")} ${time.join(":")}`;
}

// The time of day, with the date if it is another one than that of `now` (s).
export function clock(seconds, now = Date.now() / 1000) {
  const text = instant(seconds);
  return text.slice(0, 10) === instant(now).slice(0, 10) ? text.slice(11) : text;
}

// An instant below an axis that is `spanS` long; without seconds if it is long.
export function axisTime(seconds, spanS) {
  return spanS < LONG_S ? clock(seconds) : instant(seconds).slice(0, 16);
}

// Seconds with one decimal, as in `ctl status`.
export function plainSeconds(seconds) {
  return `${seconds.toFixed(1)} s`;
}

// A part of a whole, in percent.
export function part(number) {
  return `${Math.round(100 * number)} %`;
}

export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// A user by name and number; `names` are the known ones by their numbers.
export function userName(user, names = {}) {
  return names[user] ? `${names[user]} (${user})` : String(user);
}

// The name in a job's key USER-ID:NAME.
export function nameOf(jobKey) {
  return jobKey.slice(jobKey.indexOf(":") + 1);
}

// Job key -> its name, or the key if two of these jobs have the same name.
export function labelsOf(jobKeys) {
  const names = jobKeys.map(nameOf);
  const isRepeated = (name) => names.indexOf(name) !== names.lastIndexOf(name);
  return new Map(jobKeys.map(
    (key, at) => [key, isRepeated(names[at]) ? key : names[at]]));
}
