#!/usr/bin/env node
// Starts the program of this machine's platform package and ends as the program ends.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");

const platform = `@callgate/${process.platform}-${process.arch}`;
let program;
try {
  program = path.join(path.dirname(require.resolve(`${platform}/package.json`)), "bin", "callgate");
} catch {
  console.error(
    `error: callgate has no program for this machine (${platform}); it runs on linux-x64. ` +
      "If this is that machine, install it again without --omit=optional.",
  );
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends these to both processes; others send them to this one alone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
