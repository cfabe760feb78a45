#include "server.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/password.h"
#include "base/xalloc.h"

#define BLANK " \t"

struct name {
	const char *name;
	size_t at; /* of its value in struct mq_envfile */
};

static const struct name names[] = {
    {"MQ_URL", offsetof(struct mq_envfile, url)},
    {"MQ_LAYOUT", offsetof(struct mq_envfile, layout)},
    {"MQ_PASSWORD_FILE", offsetof(struct mq_envfile, password_file)},
    {"MQ_SENTINEL_PASSWORD_FILE",
	offsetof(struct mq_envfile, sentinel_password_file)},
    {"REDISCLI_AUTH", offsetof(struct mq_envfile, password)},
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static char **
value_of(struct mq_envfile *f, const struct name *name)
{
	return (char **)((char *)f + name->at);
}

static void
free_secret(char **value)
{
	if (*value != NULL)
		explicit_bzero(*value, strlen(*value));
	free(*value);
	*value = NULL;
}

/* Takes the quotes off, in place; returns what is wrong, or NULL. */
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
	from++;
	if (*from != '\0' && strchr(BLANK, *from) == NULL)
		return "unexpected text after the closing quote";
	from += strspn(from, BLANK);
	*to = '\0';
	return *from == '\0' || *from == '#' ?
	    NULL :
	    "unexpected text after the closing quote";
}

/* A value without quotes loses its comment and the blanks around it. */
static const char *
cut_comment(char *s)
{
	size_t n;

	for (n = 0; s[n] != '\0'; n++)
		if (s[n] == '#' && n > 0 && strchr(BLANK, s[n - 1]) != NULL)
			break;
	while (n > 0 && strchr(BLANK, s[n - 1]) != NULL)
		n--;
	s[n] = '\0';
	return n > 0 && s[n - 1] == '\\' ? "a value must be on one line" : NULL;
}

/* The value of a line "NAME=VALUE", in place, and where its name ends. */
static const char *
split_line(char *line, size_t *name_len, char **value)
{
	char *end;

	*name_len = strcspn(line, "=" BLANK);
	end = line + *name_len;
	end += strspn(end, BLANK);
	if (*end != '=')
		return "not NAME=VALUE";
	*value = end + 1;
	end = *value + strspn(*value, BLANK);
	/* A comment needs a blank before it. */
	*value = *end == '#' && end > *value ? end + strlen(end) : end;
	return **value == '"' || **value == '\'' ? unquote(*value) :
						   cut_comment(*value);
}

/* Whether a line with none of our names was to have one. */
static bool
is_ours(const char *line, size_t name_len, bool assigned)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				      "abcdefghijklmnopqrstuvwxyz0123456789";

	if (assigned && strspn(line, letters) == name_len)
		return strncasecmp(line, "MQ_", 3) == 0;
	return strcasestr(line, "MQ_") != NULL;
}

/* Takes a line without its end; returns what is wrong with it, or NULL. */
static const char *
take_line(struct mq_envfile *f, char *line)
{
	const char *why;
	size_t i, n;
	char *value = NULL;

	line += strspn(line, BLANK);
	if (*line == '#' || *line == ';')
		return NULL;
	if (strncmp(line, "export", 6) == 0 && strspn(line + 6, BLANK) > 0)
		line += 6 + strspn(line + 6, BLANK);
	why = split_line(line, &n, &value);
	for (i = 0; i < NAMES; i++)
		if (strlen(names[i].name) == n &&
		    strncmp(line, names[i].name, n) == 0)
			break;
	if (i == NAMES)
		return is_ours(line, n, why == NULL) ?
		    "only MQ_URL=, MQ_LAYOUT=, MQ_PASSWORD_FILE=, "
		    "MQ_SENTINEL_PASSWORD_FILE= and REDISCLI_AUTH= can "
		    "stand here" :
		    NULL;
	if (why != NULL)
		return why;
	free_secret(value_of(f, &names[i]));
	if (*value != '\0')
		*value_of(f, &names[i]) = mq_xstrdup(value);
	return NULL;
}

static const char *
read_lines(struct mq_envfile *f, FILE *in, unsigned long *number)
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
			why = take_line(f, line);
	}
	if (line != NULL)
		explicit_bzero(line, cap);
	free(line);
	return why;
}

/* Checks all that has been read. */
static const char *
check_values(struct mq_envfile *f, int fd)
{
	size_t start, password = 0;
	struct stat st;

	if (f->url == NULL &&
	    (f->layout != NULL || f->password_file != NULL ||
		f->password != NULL || f->sentinel_password_file != NULL))
		return "no MQ_URL= for its other lines (MQ_URL=private: is "
		       "the private server)";
	if (f->url != NULL)
		mq_password_find(f->url, &start, &password);
	f->exposed = (password > 0 || f->password != NULL) &&
	    fstat(fd, &st) == 0 && st.st_mode & S_IROTH;
	return NULL;
}

int
mq_envfile_read(
    struct mq_envfile *f, const char *path, char *error, size_t error_size)
{
	FILE *in = fopen(path, "re");
	unsigned long number = 0;
	const char *why;

	if (in == NULL && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (in == NULL) {
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
		return MQ_EXIT_CONFIG;
	}
	why = read_lines(f, in, &number);
	if (why != NULL)
		snprintf(
		    error, error_size, "%s: line %lu: %s", path, number, why);
	/* A directory opens like a file. */
	else if ((why = ferror(in) ? strerror(errno) :
				     check_values(f, fileno(in))) != NULL)
		snprintf(error, error_size, "%s: %s", path, why);
	fclose(in);
	if (why == NULL)
		return 0;
	mq_envfile_free(f);
	return MQ_EXIT_CONFIG;
}

void
mq_envfile_free(struct mq_envfile *f)
{
	size_t i;

	for (i = 0; i < NAMES; i++)
		free_secret(value_of(f, &names[i]));
}
