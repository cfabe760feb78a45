// Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
/*
 * The rsmq of npm, for the tests.
 *
 *	node rsmq.js METHOD[.FIELD] [NAME=VALUE...]
 *
 * calls the method of that name with these options (message=- is stdin), and
 * prints what it returns, as one line of JSON; with a FIELD only that, as it
 * is.  An error is {"error": its name}, and exit status 1.  And:
 *
 *	node rsmq.js serve ASK ANSWER	the same for each line of the fifo ASK:
 *						RSMQ_NS, RSMQ_REALTIME and the words, between
 *						tabs; the answer is a line, behind the exit
 *						status and a blank.  Each has a connection of
 *						its own.
 *	node rsmq.js send QUEUE FIRST LAST		numbers, one a message
 *	node rsmq.js work QUEUE FILE			receive for ever: append
 *						the message and a newline to
 *						the file, delete it
 *	node rsmq.js listen QUEUE N		N of what it is told in real
 *						time, one a line
 *	node rsmq.js bench send|receive QUEUE N AT-ONCE
 *
 * RSMQ_SOCKET says where the server is, RSMQ_NS the namespace, RSMQ_REALTIME=1
 * makes it tell.  NODE_PATH has the module.
 */
"use strict";

const fs = require("fs");
const readline = require("readline");
const RedisSMQ = require("rsmq");

function connection(ns, realtime) {
	return {
		path: process.env.RSMQ_SOCKET,
		ns: ns || "rsmq",
		realtime: realtime === "1",
	};
}

/* Its scripts are loaded when it connects; before that, receiving fails. */
function open(ns, realtime) {
	const rsmq = new RedisSMQ(connection(ns, realtime));

	return new Promise((resolve) => {
		const wait = () => rsmq.receiveMessage_sha1 &&
			rsmq.changeMessageVisibility_sha1 && rsmq.popMessage_sha1 ?
			resolve(rsmq) : setTimeout(wait, 1);
		wait();
	});
}

function options(words) {
	const o = {};

	for (const word of words) {
		const at = word.indexOf("=");
		const name = word.slice(0, at);
		const value = word.slice(at + 1);

		o[name] = name === "message" && value === "-" ?
			fs.readFileSync(0).toString() :
			["vt", "delay", "maxsize"].includes(name) ?
				Number(value) : value;
	}
	return o;
}

/* The exit status, and what is printed. */
async function one(rsmq, name, words) {
	const [method, field] = name.split(".");
	let result;

	try {
		result = method === "listQueues" ?
			await rsmq.listQueuesAsync() :
			await rsmq[method + "Async"](options(words));
	} catch (e) {
		return [1, JSON.stringify({error: e.name})];
	}
	return [0, field ? String(result[field]) : JSON.stringify(result)];
}

const quit = (rsmq) => new Promise((resolve) => rsmq.quit(resolve));

async function serve(ask, answer) {
	/* Both ends of each are open, so that neither ever ends. */
	const lines = readline.createInterface(
		{input: fs.createReadStream(ask, {flags: "r+"})});
	const out = fs.openSync(answer, "r+");

	for await (const line of lines) {
		const [ns, realtime, name, ...words] = line.split("\t");
		const rsmq = await open(ns, realtime);
		const [status, text] = await one(rsmq, name, words);

		await quit(rsmq);
		fs.writeSync(out, status + " " + text + "\n");
	}
}

/* n calls of fn(i), so many of them at once. */
async function concurrently(n, atOnce, fn) {
	let next = 0;
	const loop = async () => {
		while (next < n)
			await fn(next++);
	};

	await Promise.all(Array.from({length: atOnce}, loop));
}

function send(rsmq, qname, first, last) {
	return concurrently(last - first + 1, 50, (i) =>
		rsmq.sendMessageAsync({qname, message: String(first + i)}));
}

async function work(rsmq, qname, file) {
	const fd = fs.openSync(file, "a");

	for (;;) {
		const m = await rsmq.receiveMessageAsync({qname});
		if (m.id === undefined) {
			await new Promise((resolve) => setTimeout(resolve, 20));
			continue;
		}
		fs.writeSync(fd, m.message + "\n");
		await rsmq.deleteMessageAsync({qname, id: m.id});
	}
}

function listen(rsmq, qname, n) {
	return new Promise((resolve) => {
		rsmq.redis.on("message", (channel, text) => {
			console.log(text);
			if (--n === 0)
				resolve();
		});
		rsmq.redis.subscribe(rsmq.redisns + "rt:" + qname, () =>
			console.error("listening"));
	});
}

/* Seconds for n messages, without those that it takes to begin. */
async function bench(rsmq, what, qname, n, atOnce) {
	const message = "x".repeat(100);
	const start = process.hrtime.bigint();

	await concurrently(n, atOnce, what === "send" ?
		() => rsmq.sendMessageAsync({qname, message}) :
		async () => {
			const {id} = await rsmq.receiveMessageAsync({qname});
			if (await rsmq.deleteMessageAsync({qname, id}) !== 1)
				throw new Error("not deleted");
		});
	console.log(Number(process.hrtime.bigint() - start) / 1e9);
}

async function main(name, ...words) {
	if (name === "serve")
		return serve(...words);

	const rsmq = await open(process.env.RSMQ_NS, process.env.RSMQ_REALTIME);
	const [qname, a, b] = words;

	if (name === "send")
		await send(rsmq, qname, Number(a), Number(b));
	else if (name === "work")
		await work(rsmq, qname, a);
	else if (name === "listen")
		await listen(rsmq, qname, Number(a));
	else if (name === "bench")
		await bench(rsmq, words[0], a, Number(b), Number(words[3]));
	else {
		const [status, text] = await one(rsmq, name, words);

		console.log(text);
		process.exitCode = status;
	}
	await quit(rsmq);
}

main(...process.argv.slice(2)).catch((e) => {
	console.error(e);
	process.exit(70);
});
