// Number and text formatting.

import type { Interval, Unit } from "./contract";

const MINUS = "\u2212";
const DASH = "\u2013";
const PERCENT = "%";

const signed = (text: string) => (/^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", MINUS));

export const whole = (value: number) => signed(value.toFixed(0));
export const two = (value: number) => signed(value.toFixed(2));
export const share = (value: number) => signed((100 * value).toFixed(1)) + PERCENT;
export const count = (value: number) => value.toLocaleString("en");

const formatters: Record<Unit, (value: number) => string> = {
  number: two,
  score: two,
  share,
  rating: whole,
};

export const show = (value: number, unit: Unit) => formatters[unit](value);

/** The two bounds of an interval; "" for an interval without width. */
export function ends(interval: Interval, unit: Unit): string {
  const { low, high } = interval;
  if (low === null && high === null) return "interval unknown";
  if (low === high) return "";
  const joint = (low ?? -1) < 0 ? " to " : DASH;
  const from = low === null ? `${MINUS}\u221e` : show(low, unit).replace(PERCENT, "");
  return from + joint + (high === null ? "\u221e" : show(high, unit));
}

/** A figure with its interval. */
export function figure(interval: Interval | null, unit: Unit): string {
  if (interval === null) return "missing";
  const reach = ends(interval, unit);
  return show(interval.value, unit) + (reach ? ` (${reach})` : "");
}

const minus = (value: number | null) => (value === null ? null : -value);

/** The figure with its sign reversed. */
export const turned = ({ value, low, high }: Interval): Interval => ({
  value: -value, low: minus(high), high: minus(low),
});

const withSign = (value: number) => (value > 0 && two(value) !== "0.00" ? `+${two(value)}` : two(value));

/** A signed difference with its interval; says so if the interval includes 0. */
export function change({ value, low, high }: Interval, unit: string): string {
  if (low === null || high === null) return `${withSign(value)} ${unit} (interval unknown)`;
  const tied = low <= 0 && high >= 0 ? ", not significant" : "";
  return `${withSign(value)} (${two(low)} to ${two(high)}) ${unit}${tied}`;
}

export const plural = (number: number, one: string, more: string) =>
  `${count(number)} ${number === 1 ? one : more}`;

/** 1,234 as it is, 7.1 M, 3.2 bn: for counts of tokens. */
export function large(value: number): string {
  if (value < 100_000) return count(value);
  if (value < 1e9) return `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)}\u00a0M`;
  return `${(value / 1e9).toFixed(1)}\u00a0bn`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return "under 1\u00a0s";
  if (seconds < 90) return `${Math.round(seconds)}\u00a0s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)}\u00a0min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)}\u00a0h`;
  return `${(seconds / 86_400).toFixed(1)}\u00a0days`;
}

export function money(value: number, currency: string): string {
  const digits = value > 0 && value < 0.1 ? 4 : 2;
  return `${value.toFixed(digits)}${currency ? `\u00a0${currency}` : ""}`;
}

/** A date without time, such as "Nov 16, 2026"; other text is returned unchanged. */
export function day(stamp: string): string {
  const date = new Date(stamp);
  if (!stamp || Number.isNaN(date.getTime())) return stamp;
  return date.toLocaleDateString("en-US", { day: "numeric", month: "short", year: "numeric" });
}

/** A date with its time, such as "Nov 16, 2026, 14:05", which distinguishes runs of one day. */
export function moment(stamp: string): string {
  const date = new Date(stamp);
  if (!stamp || Number.isNaN(date.getTime())) return stamp;
  return `${day(stamp)}, ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
}

/** Whether a moment is after another; false if one of them is unknown. */
export const isAfter = (one: string, other: string) => new Date(one).getTime() > new Date(other).getTime();

export const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** A name shortened in the middle, because names differ at both ends. */
export function shortened(name: string, most: number): string {
  const letters = [...name];
  if (letters.length <= most) return name;
  const tail = Math.floor((most - 1) / 3);
  return `${letters.slice(0, most - 1 - tail).join("")}\u2026${letters.slice(-tail).join("")}`;
}
