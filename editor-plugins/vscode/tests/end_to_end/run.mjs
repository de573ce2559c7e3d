// Runs one scenario in the editor: `node run.mjs TASK`, TASK being JSON. Prints what was seen as JSON.
//
// A scenario is named FILE.FUNCTION, the file being one of scenarios/.

import { open } from "./workbench.mjs";

const task = JSON.parse(process.argv[2]);
const [file, name] = task.scenario.split(".");
const scenarios = await import(`./scenarios/${file}.mjs`);
const bench = await open(task);
try {
  console.log(JSON.stringify(await scenarios[name](bench, task)));
} catch (error) {
  await bench.page.screenshot({ path: `${task.picturesFolder ?? task.folder}/failed-${task.scenario}.png` }).catch(() => undefined);
  throw error;
} finally {
  await bench.close();
}
