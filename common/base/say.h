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

/* Ends the program by a signal, so that the parent sees that.  Where the kernel does not
 * allow that, as in the first process of a container, the exit status is 128 + sig.  Can be
 * called in a signal handler. */
void mq_end_by(int sig) __attribute__((noreturn));

/* The name of a signal without SIG, constant text; NULL: the number has none.
 * (sigabbrev_np(3) is in glibc 2.32 and later only.) */
const char *mq_signal_name(int sig);

/* How text is shown in some place. */
struct mq_view {
	/* The bytes of the character at p, or 1; *odd: 0 if it can be shown as it is. */
	size_t (*look)(const char *p, size_t n, uint32_t *odd);
	const char *special; /* characters of ASCII that cannot, either */
	/* Writes the n bytes of such a character, at most MQ_ESCAPED_MAX for each, and
	 * returns the end. */
	char *(*escape)(char *to, const char *p, size_t n, uint32_t odd);
};
#define MQ_ESCAPED_MAX 6

/* n bytes at p as they are shown there; the caller frees. */
char *mq_show(const struct mq_view *, const char *p, size_t n);

/* The same on a terminal.  Printable text of the user's LC_CTYPE stays as it is, but for
 * characters that turn its direction. */
char *mq_visible(const char *p, size_t n);
/* The same, but newlines and tabs stay. */
extern const struct mq_view mq_lines;

/* Flushes and closes stdout, before a successful exit of anything that printed results.
 * Ends with exit 74 when the output did not get out, silently when only the reader had
 * gone (EPIPE). */
void mq_close_stdout(void);

#endif
