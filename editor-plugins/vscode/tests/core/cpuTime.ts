/** The time of the processor that this process has used, in milliseconds: no other program changes it. */
export function cpuMilliseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
