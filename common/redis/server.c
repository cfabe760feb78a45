/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "server.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- envfile ------------------------------------------------------------- */

/* The file mq/env with the server's URL: lines NAME=VALUE as sh(1) and systemd(1) read them.
 * Blanks may stand around the '=', "export" before the name, quotes around the value, and a
 * comment behind it (" # ..."). */

enum name {
	URL,
	LAYOUT,
	PASSWORD_FILE,
	SENTINEL_PASSWORD_FILE,
	PASSWORD,
	NAMES
};

static const char *const names[NAMES] = {"MQ_URL", "MQ_LAYOUT",
    "MQ_PASSWORD_FILE", "MQ_SENTINEL_PASSWORD_FILE", "REDISCLI_AUTH"};

struct values {
	char *of[NAMES]; /* NULL: no such line, or an empty value */
};

#define BLANK " \t"

static void
free_secret(char **value)
{
	if (*value != NULL)
		freezero(*value, strlen(*value));
	*value = NULL;
}

/* Removes the quotes in place.  Returns an error, or NULL. */
static const char *
unquote(char *s)
{
	const char quote = *s;
	char *to = s, *from = s + 1;

	for (; *from != quote; from++) {
		if (quote == '"' && *from == '\\' && from[1] != '\0' &&
		    strchr("\"\\$`", from[1]) != NULL)
			from++;
		if (*from == '\0')
			return "the closing quote is missing";
		*to++ = *from;
	}
	*to = '\0';
	/* A comment needs a blank before it. */
	to = ++from;
	from += strspn(from, BLANK);
	return *from == '\0' || (*from == '#' && from > to) ?
	    NULL :
	    "unexpected text after the closing quote";
}

/* Finds the value of a line "NAME=VALUE", in place, and the end of its name.  A value without
 * quotes loses its comment and the blanks around it.  Returns an error, or NULL. */
static const char *
split_line(char *line, size_t *name_len, char **value)
{
	char *s;
	size_t n;

	*name_len = strcspn(line, "=" BLANK);
	s = line + *name_len;
	s += strspn(s, BLANK);
	if (*s != '=')
		return "not NAME=VALUE";
	*value = s + 1;
	s = *value + strspn(*value, BLANK);
	/* A comment needs a blank before it. */
	if (*s == '#' && s > *value)
		s += strlen(s);
	*value = s;
	if (*s == '"' || *s == '\'')
		return unquote(s);
	for (n = 0; s[n] != '\0'; n++)
		if (s[n] == '#' && n > 0 && strchr(BLANK, s[n - 1]) != NULL)
			break;
	while (n > 0 && strchr(BLANK, s[n - 1]) != NULL)
		n--;
	s[n] = '\0';
	return n > 0 && s[n - 1] == '\\' ? "a value must be on one line" : NULL;
}

/* Stores the value of a line without its end.  Returns an error, or NULL. */
static const char *
parse_line(struct values *v, char *line)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				      "abcdefghijklmnopqrstuvwxyz0123456789";
	const char *why;
	size_t i, n;
	char *value = NULL;
	bool ours;

	line += strspn(line, BLANK);
	if (*line == '#' || *line == ';')
		return NULL;
	if (strncmp(line, "export", 6) == 0 && strspn(line + 6, BLANK) > 0)
		line += 6 + strspn(line + 6, BLANK);
	why = split_line(line, &n, &value);
	for (i = 0; i < NAMES; i++)
		if (strlen(names[i]) == n && strncmp(line, names[i], n) == 0)
			break;
	if (i == NAMES) {
		/* A misspelt name of ours is an error, other programs' are not. */
		ours = why == NULL && strspn(line, letters) == n ?
		    strncasecmp(line, "MQ_", 3) == 0 :
		    strcasestr(line, "MQ_") != NULL;
		return ours ?
		    "only MQ_URL=, MQ_LAYOUT=, MQ_PASSWORD_FILE=, "
		    "MQ_SENTINEL_PASSWORD_FILE= and REDISCLI_AUTH= can "
		    "stand here" :
		    NULL;
	}
	if (why != NULL)
		return why;
	free_secret(&v->of[i]);
	if (*value != '\0')
		v->of[i] = mq_xstrdup(value);
	return NULL;
}

/* Warns of the first file with a password that everybody can read. */
static void
note_exposed(struct mq_server *server, FILE *f, const char *path)
{
	struct stat st;

	if (server->note[0] == '\0' && fstat(fileno(f), &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_mode & S_IROTH)
		snprintf(server->note, sizeof(server->note),
		    "%s: everybody can read the password in it; run chmod o-r "
		    "on it",
		    path);
}

static const char *
read_lines(struct values *v, FILE *in, unsigned long *number)
{
	const char *why = NULL;
	char *line = NULL;
	size_t cap = 0, len;
	ssize_t n;

	for (; why == NULL && (n = getline(&line, &cap, in)) > 0; ++*number) {
		len = strcspn(line, "\r\n");
		if (strlen(line) < (size_t)n)
			why = "contains a NUL byte";
		line[len] = '\0';
		if (why == NULL)
			why = parse_line(v, line);
	}
	freezero(line, cap);
	return why;
}

/*
 * Reads an env file, which need not exist.  Lines of other programs are ignored.  Errors,
 * which never show a value, are unknown names that begin with MQ_, lines with MQ_ that are
 * no assignment, and other names without MQ_URL.
 */
static int
read_file(struct mq_server *server, struct values *v, const char *path)
{
	FILE *in = fopen(path, "re");
	unsigned long number = 0;
	size_t start, password = 0;
	const char *why;
	bool others = false;
	int i, status = 0;

	if (in == NULL)
		return errno == ENOENT || errno == ENOTDIR ?
		    0 :
		    mq_server_fail(server, MQ_EXIT_CONFIG, "%s: %s", path,
			strerror(errno));
	why = read_lines(v, in, &number);
	for (i = URL + 1; i < NAMES; i++)
		others |= v->of[i] != NULL;
	if (why != NULL) {
		status = mq_server_fail(server, MQ_EXIT_CONFIG,
		    "%s: line %lu: %s", path, number, why);
	} else if (ferror(in)) {
		/* fopen(3) opens directories, too. */
		status = mq_server_fail(
		    server, MQ_EXIT_CONFIG, "%s: %s", path, strerror(errno));
	} else if (v->of[URL] != NULL) {
		mq_password_find(v->of[URL], &start, &password);
		if (password > 0 || v->of[PASSWORD] != NULL)
			note_exposed(server, in, path);
		server->layout = v->of[LAYOUT];
		server->layout_from = mq_xstrdup(path);
		v->of[LAYOUT] = NULL;
	} else if (others) {
		status = mq_server_fail(server, MQ_EXIT_CONFIG,
		    "%s: no MQ_URL= for its other lines (MQ_URL=private: is "
		    "the private server)",
		    path);
	}
	fclose(in);
	return status;
}

/* --- server -------------------------------------------------------------- */

/* Reads the first env file with a URL: the user's, else /etc/mq/env. */
static int
read_files(struct mq_server *server, struct values *v)
{
	const char *dir = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *own = NULL;
	int status = 0;

	if (dir != NULL && dir[0] == '/')
		own = mq_xasprintf("%s/mq/env", dir);
	else if (home != NULL && home[0] == '/')
		own = mq_xasprintf("%s/.config/mq/env", home);
	if (own != NULL)
		status = read_file(server, v, own);
	/* A directory that this user may not enter is for services. */
	if (status == 0 && v->of[URL] == NULL && access("/etc/mq", X_OK) == 0)
		status = read_file(server, v, "/etc/mq/env");
	free(own);
	return status;
}

/* The environment variable, unless unset or empty; else the file's value. */
static const char *
value_of(const struct values *v, enum name name)
{
	const char *value = getenv(names[name]);

	return value != NULL && *value != '\0' ? value : v->of[name];
}

/* Reads *password from the file that the variable names, if it is set. */
static int
password_from_file(struct mq_server *server, const struct values *v,
    enum name name, char **password)
{
	const char *path = value_of(v, name);
	char *line = NULL;
	size_t cap = 0;
	FILE *f;
	int status = 0;

	if (path == NULL)
		return 0;
	f = fopen(path, "re");
	if (f == NULL || getline(&line, &cap, f) == -1) {
		status = mq_server_fail(server, MQ_EXIT_CONFIG, "%s: %s: %s",
		    names[name], path,
		    f == NULL || ferror(f) ? strerror(errno) : "empty");
	} else {
		line[strcspn(line, "\r\n")] = '\0';
		*password = mq_xstrdup(line);
		note_exposed(server, f, path);
	}
	freezero(line, cap);
	if (f != NULL)
		fclose(f);
	return status;
}

static int
add_passwords(struct mq_server *server, const struct values *v)
{
	const char *auth = value_of(v, PASSWORD);
	struct mq_url *u = &server->url;
	int status = 0;

	if (u->kind == MQ_URL_PRIVATE)
		return v->of[PASSWORD_FILE] == NULL && v->of[PASSWORD] == NULL ?
		    0 :
		    mq_server_fail(server, MQ_EXIT_CONFIG,
			"%s: the env file has a password, but a private server "
			"needs none",
			server->name);
	if (u->password == NULL)
		status =
		    password_from_file(server, v, PASSWORD_FILE, &u->password);
	if (status == 0 && u->password == NULL && auth != NULL)
		u->password = mq_xstrdup(auth);
	if (status == 0 && u->kind == MQ_URL_SENTINEL)
		status = password_from_file(server, v, SENTINEL_PASSWORD_FILE,
		    &server->sentinel_password);
	return status;
}

static int
parse_server(struct mq_server *server, const char *url)
{
	const struct mq_url *u = &server->url;
	const char *why;

	if (mq_url_parse(url, &server->url, &why) == -1)
		return mq_server_fail(
		    server, MQ_EXIT_CONFIG, "server URL: %s", why);
	mq_url_show(u, server->name, sizeof(server->name));
	/* Errors are "NAME: cause". */
	if (strcmp(server->name, "private:") == 0)
		server->name[strlen("private")] = '\0';
	why = u->tls ? MQ_TLS_MISSING : NULL;
	if (why != NULL)
		return mq_server_fail(
		    server, MQ_EXIT_CONFIG, "%s: %s", server->name, why);
	if (u->kind == MQ_URL_UNIX) {
		strlcpy(server->socket, u->path, sizeof(server->socket));
	} else if (u->kind == MQ_URL_REDIS && mq_address_is(u->hosts->name)) {
		strlcpy(server->host, u->hosts->name, sizeof(server->host));
		strlcpy(server->address, server->host, sizeof(server->address));
		server->port = u->hosts->port;
	}
	return 0;
}

/* Warns of a certificate that is not verified; after an error, frees the server. */
static int
finish_server(struct mq_server *server, int status)
{
	size_t n = strlen(server->note);

	if (status != 0)
		mq_server_free(server);
	else if (server->url.insecure)
		snprintf(server->note + n, sizeof(server->note) - n,
		    "%s%s: insecure=1: its certificate is not verified",
		    n > 0 ? "; " : "", server->name);
	return status;
}

int
mq_server_find(struct mq_server *server, const char *given)
{
	struct values v = {0};
	int i, status = 0;

	*server = (struct mq_server){0};
	if (given == NULL || *given == '\0')
		given = value_of(&v, URL);
	if (given == NULL) {
		status = read_files(server, &v);
		given = v.of[URL] != NULL ? v.of[URL] : "private:";
	}
	if (status == 0)
		status = parse_server(server, given);
	if (status == 0)
		status = add_passwords(server, &v);
	for (i = 0; i < NAMES; i++)
		free_secret(&v.of[i]);
	return finish_server(server, status);
}

int
mq_server_at(
    struct mq_server *server, const char *url, const struct mq_server *known)
{
	const struct mq_url *u = &server->url, *of = &known->url;
	const struct mq_url_host *host, *one;
	bool same;
	int status;

	*server = (struct mq_server){0};
	status = parse_server(server, url);
	/* Only hosts of the known server may get its password. */
	same = status == 0 && u->kind == MQ_URL_SENTINEL &&
	    of->kind == MQ_URL_SENTINEL &&
	    (!of->tls || (u->tls && (!u->insecure || of->insecure)));
	for (host = u->hosts; same && host < u->hosts + u->hosts_n; host++) {
		same = false;
		for (one = of->hosts; one < of->hosts + of->hosts_n; one++)
			same |= one->port == host->port &&
			    strcmp(one->name, host->name) == 0;
	}
	if (same)
		server->sentinel_password =
		    mq_xstrdup(known->sentinel_password);
	return finish_server(server, status);
}

void
mq_server_behind(struct mq_server *server, const struct mq_server *of,
    struct mq_url_host *host, bool sentinel)
{
	struct mq_url *u = &server->url;

	*server = (struct mq_server){.url = of->url, .node = !sentinel};
	u->kind = MQ_URL_REDIS;
	u->hosts = host;
	u->hosts_n = 1;
	u->path = u->layout = u->ns = NULL;
	if (sentinel) {
		u->user = NULL;
		u->password = of->sentinel_password;
		u->db = 0;
	}
	mq_url_show(u, server->name, sizeof(server->name));
	/* The certificate is for the name, even if an address is connected. */
	if (u->sni == NULL)
		u->sni = host->name;
}

void
mq_server_free(struct mq_server *server)
{
	mq_url_free(&server->url);
	free(server->layout);
	free(server->layout_from);
	free_secret(&server->sentinel_password);
	server->layout = server->layout_from = NULL;
}
