#!/usr/bin/env node
// Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
// A worker: mq-consume -j4 files -- ./worker.js
// The payload is the path of a file, whose lines it counts.
const fs = require("fs");
const say = (verb) => fs.writeSync(3, verb + "\n");

const path = fs.readFileSync(0, "utf8").replace(/\n$/, "");
say("run counting");
try {
	const lines = fs.readFileSync(path, "latin1").split("\n").length - 1;
	say(lines ? `done ${lines} lines` : "resend 60-still empty"); // again, in a minute
} catch (error) {
	say(`err ${error.code}`); // rejected, with this reason; the message has the path in it
}
