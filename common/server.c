#include "server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "private.h"
#include "xalloc.h"

/* Room for any line that a person would write into an env file. */
#define LINE_SIZE 4096

static void
strip(char *s)
{
	size_t n;

	s[strcspn(s, "\r\n")] = '\0';
	n = strlen(s);
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
	if (n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
		memmove(s, s + 1, n - 2);
		s[n - 2] = '\0';
	}
}

/*
 * The value of the last MQ_URL= line of a file; the caller frees.  A file
 * that is not there has none; one that cannot be read is an error.
 */
static int
url_from_file(const char *path, char **url, char *error, size_t error_size)
{
	char line[LINE_SIZE];
	const char *at;
	bool failed;
	FILE *f = fopen(path, "re");

	if (f == NULL) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
		return MQ_EXIT_CONFIG;
	}
	while (fgets(line, sizeof(line), f) != NULL) {
		at = line + strspn(line, " \t");
		if (strncmp(at, "export ", 7) == 0)
			at += 7;
		if (strncmp(at, "MQ_URL=", 7) != 0)
			continue;
		free(*url);
		*url = mq_xstrdup(at + 7);
		strip(*url);
	}
	/* A directory opens like a file. */
	failed = ferror(f);
	if (failed)
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
	fclose(f);
	return failed ? MQ_EXIT_CONFIG : 0;
}

static char *
user_env_file(void)
{
	const char *dir = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (dir != NULL && dir[0] == '/')
		return mq_xasprintf("%s/mq/env", dir);
	if (home != NULL && home[0] != '\0')
		return mq_xasprintf("%s/.config/mq/env", home);
	return NULL;
}

/* *url is set to an allocated URL; it is the private server's when none is. */
static int
configured_url(const char *given, char **url, char *error, size_t error_size)
{
	char *path;
	int status = 0;

	*url = NULL;
	if (given == NULL || *given == '\0')
		given = getenv("MQ_URL");
	if (given != NULL && *given != '\0') {
		*url = mq_xstrdup(given);
		return 0;
	}
	path = user_env_file();
	if (path != NULL)
		status = url_from_file(path, url, error, error_size);
	free(path);
	if (status == 0 && *url == NULL)
		status = url_from_file("/etc/mq/env", url, error, error_size);
	if (status == 0 && *url == NULL)
		*url = mq_xstrdup("private:");
	return status;
}

static int
password_from_file(
    const char *path, struct mq_url *u, char *error, size_t error_size)
{
	char line[LINE_SIZE];
	FILE *f = fopen(path, "re");

	if (f == NULL || fgets(line, sizeof(line), f) == NULL) {
		snprintf(error, error_size, "MQ_PASSWORD_FILE: %s: %s", path,
		    f == NULL || ferror(f) ? strerror(errno) : "empty");
		if (f != NULL)
			fclose(f);
		return MQ_EXIT_CONFIG;
	}
	fclose(f);
	line[strcspn(line, "\r\n")] = '\0';
	u->password = mq_xstrdup(line);
	explicit_bzero(line, sizeof(line));
	return 0;
}

static int
add_password(struct mq_url *u, char *error, size_t error_size)
{
	const char *file = getenv("MQ_PASSWORD_FILE");
	const char *auth = getenv("REDISCLI_AUTH");

	if (u->password != NULL || u->kind == MQ_URL_PRIVATE)
		return 0;
	if (file != NULL && *file != '\0')
		return password_from_file(file, u, error, error_size);
	if (auth != NULL && *auth != '\0')
		u->password = mq_xstrdup(auth);
	return 0;
}

/* What parses but cannot be reached yet. */
static const char *
not_yet(enum mq_url_kind kind)
{
	switch (kind) {
	case MQ_URL_REDISS:
		return "rediss:// (TLS) comes in a later version";
	case MQ_URL_CLUSTER:
		return "redis-cluster:// comes in a later version";
	case MQ_URL_SENTINEL:
		return "redis-sentinel:// comes in a later version";
	default:
		return NULL;
	}
}

static int
parse(struct mq_server *server, const char *url, char *error, size_t error_size)
{
	const char *why;

	if (mq_url_parse(url, &server->url, &why) == -1) {
		snprintf(error, error_size, "server URL: %s", why);
		return MQ_EXIT_CONFIG;
	}
	mq_url_show(&server->url, server->name, sizeof(server->name));
	why = not_yet(server->url.kind);
	if (why != NULL) {
		snprintf(error, error_size, "%s: %s", server->name, why);
		return MQ_EXIT_CONFIG;
	}
	if (server->url.kind != MQ_URL_UNIX)
		return 0;
	if (strlcpy(server->socket, server->url.path, sizeof(server->socket)) <
	    sizeof(server->socket))
		return 0;
	snprintf(error, error_size, "%s: longer than a socket's path may be",
	    server->name);
	return MQ_EXIT_CONFIG;
}

int
mq_server_find(
    struct mq_server *server, const char *given, char *error, size_t error_size)
{
	char *url;
	int status;

	*server = (struct mq_server){0};
	status = configured_url(given, &url, error, error_size);
	if (status == 0)
		status = parse(server, url, error, error_size);
	if (status == 0)
		status = add_password(&server->url, error, error_size);
	if (url != NULL)
		explicit_bzero(url, strlen(url));
	free(url);
	if (status != 0)
		mq_server_free(server);
	return status;
}

int
mq_server_at(
    struct mq_server *server, const char *url, char *error, size_t error_size)
{
	int status;

	*server = (struct mq_server){0};
	status = parse(server, url, error, error_size);
	if (status != 0)
		mq_server_free(server);
	return status;
}

int
mq_server_wake(struct mq_server *server, char *error, size_t error_size)
{
	if (server->url.kind != MQ_URL_PRIVATE)
		return 0;
	return mq_private_ensure(server->url.path, server->socket,
	    sizeof(server->socket), error, error_size);
}

void
mq_server_free(struct mq_server *server)
{
	mq_url_free(&server->url);
}
