/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Messages to a person.  Every line goes to stderr as
 * "mq-x: subject: what went wrong: cause".  Control characters, characters that turn
 * the direction of text, and bytes that are no text are escaped as vis(3) does, so
 * that a hostile queue name or server reply never drives the terminal.
 */
#ifndef MQ_SAY_H
#define MQ_SAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a line; the newline is added. */
void mq_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Where the lines go from now on; NULL: stderr.  The caller closes the stream. */
void mq_say_to(FILE *);

/* mq_say(), then exit with status. */
void mq_die(int status, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Ends the program by a signal, for the parent to see.  If the kernel refuses, as for the
 * first process of a container, the exit status is 128 + sig.  Safe in a signal handler. */
void mq_end_by(int sig) __attribute__((noreturn));

/* The name of a signal without SIG, constant text; NULL: the number has none.
 * (sigabbrev_np(3) is in glibc 2.32 and later only.) */
const char *mq_signal_name(int sig);

/* The characters that some output escapes, and how. */
struct mq_view {
	/* Returns the bytes of the character at p, 1 if it is invalid.  *odd is 0 if the
	 * character is shown as it is, else a number for escape(). */
	size_t (*look)(const char *p, size_t n, uint32_t *odd);
	const char *special; /* ASCII characters that are escaped, too */
	/* Writes an escaped character of n bytes, at most MQ_ESCAPED_MAX for each of them,
	 * and returns the end. */
	char *(*escape)(char *to, const char *p, size_t n, uint32_t odd);
};
#define MQ_ESCAPED_MAX 6

/* The n bytes at p, escaped; the caller frees. */
char *mq_show(const struct mq_view *, const char *p, size_t n);

/* mq_show() for a terminal: printable text of the user's LC_CTYPE stays as it is, except
 * characters that turn its direction. */
char *mq_visible(const char *p, size_t n);
/* As for mq_visible(), but newlines and tabs stay. */
extern const struct mq_view mq_lines;

/* Flushes and closes stdout before a successful exit.  If results could not be written,
 * exits with 74, silently if only the reader had gone (EPIPE). */
void mq_close_stdout(void);

#endif
