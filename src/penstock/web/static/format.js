// SPDX-License-Identifier: MIT
// Quantities in words, in the units of penstock's own tables.

const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

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

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

export function instant(seconds) {
  return new Date(seconds * 1000).toLocaleString([], { hour12: false });
}

// A part of a whole, in percent.
export function part(number) {
  return `${Math.round(100 * number)} %`;
}

export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// The name in a job's key USER-ID:NAME.
export function nameOf(jobKey) {
  return jobKey.slice(jobKey.indexOf(":") + 1);
}
