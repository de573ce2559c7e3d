/** Addresses of the computer itself. */

const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0|(?:.+\.)?localhost)$/u;

/** Whether a web address leads to the computer on which it is opened, and to no other. */
export function isLoopback(address: string): boolean {
  return URL.canParse(address) && LOOPBACK.test(new URL(address).hostname);
}
