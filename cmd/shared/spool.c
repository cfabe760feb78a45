/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "spool.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>

#include "base/state.h"

#define LENGTH_MAX                                                             \
	((size_t)512 << 20) /* most bytes of a header, or of a payload */

/* --- the folder ------------------------------------------------------------------ */

/* The path of a file in the folder; the caller frees.  NULL with errno: there is no home. */
static char *
path_of(const char *name, const char *suffix)
{
	char *state = mq_state_dir(), *path;

	if (state == NULL) {
		errno = ENOENT;
		return NULL;
	}
	path = mq_xasprintf(
	    "%s/spool%s%s%s", state, *name != '\0' ? "/" : "", name, suffix);
	free(state);
	return path;
}

/* Nobody else may put messages there, which would be published with our rights. */
static int
make_folder(void)
{
	char *path = path_of("", "");
	struct stat st;
	int rv;

	if (path == NULL)
		return -1;
	rv = mq_make_dirs(path, 0700);
	if (rv == 0)
		rv = stat(path, &st);
	if (rv == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		errno = EPERM;
		rv = -1;
	}
	free(path);
	return rv;
}

static int
sync_folder(void)
{
	char *path = path_of("", "");
	int fd =
	    path != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int rv = fd != -1 ? fsync(fd) : -1;

	if (fd != -1)
		close(fd);
	free(path);
	return rv;
}

/* Adds the names of all files that end in this suffix to a list.  *bytes grows by the sizes of all. */
static int
look(const char *suffix, struct mq_names *out, size_t *bytes)
{
	char *path = path_of("", "");
	DIR *dir = path != NULL ? opendir(path) : NULL;
	const struct dirent *entry;
	struct stat st;
	size_t n;

	free(path);
	if (dir == NULL)
		return errno == ENOENT ? 0 : -1;
	while ((entry = readdir(dir)) != NULL) {
		n = strcspn(entry->d_name, ".");
		if (strcmp(entry->d_name + n, suffix) == 0 &&
		    mq_id_valid(entry->d_name, n))
			mq_names_add(out, entry->d_name, NULL);
		if (bytes != NULL &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    S_ISREG(st.st_mode))
			*bytes += (size_t)st.st_size;
	}
	closedir(dir);
	mq_names_sort(out);
	return 0;
}

int
spool_list(struct mq_names *out, bool refused)
{
	*out = (struct mq_names){0};
	if (refused && look(".refused", out, NULL) == -1)
		return -1;
	return look("", out, NULL);
}

/* Removes what programs that were killed have left with this suffix: what a program still writes is
 * locked, and a state stays as long as its file. */
static void
sweep(const char *suffix)
{
	struct mq_names names = {0};
	char *path;
	size_t i, n = strlen(suffix);
	int fd;

	(void)look(suffix, &names, NULL);
	for (i = 0; i < names.n; i++) {
		path = path_of(names.list[i].name, "");
		fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
			path[strlen(path) - n] = '\0';
			if (strcmp(suffix, ".state") != 0 ||
			    access(path, F_OK) == -1) {
				path[strlen(path)] = '.';
				unlink(path);
			}
		}
		if (fd != -1)
			close(fd);
		free(path);
	}
	mq_names_free(&names);
}

int
spool_lock(void)
{
	char *path = make_folder() == 0 ? path_of("lock", "") : NULL;
	int fd = -1, rv;

	if (path != NULL)
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	free(path);
	if (fd == -1)
		return -1;
	while ((rv = flock(fd, LOCK_EX)) == -1 && errno == EINTR)
		;
	if (rv == -1) {
		close(fd);
		return -1;
	}
	sweep(".new");
	sweep(".begin");
	sweep(".state");
	return fd;
}

static int
unlink_file(const char *name, const char *suffix)
{
	char *path = path_of(name, suffix);
	int rv = path != NULL ? unlink(path) : -1;

	free(path);
	return rv;
}

int
spool_remove(const char *name)
{
	if (unlink_file(name, "") == -1 || sync_folder() == -1)
		return -1;
	/* A state without its file means nothing. */
	(void)unlink_file(name, ".state");
	return 0;
}

/* --- state ------------------------------------------------------------------------- */

static json_t *
load_line(char **line, size_t *size, FILE *f)
{
	ssize_t n = getline(line, size, f);

	return n > 0 ? mq_json_load(*line, (size_t)n, false) : NULL;
}

static int64_t
number_of(const json_t *v, const char *name)
{
	return json_integer_value(json_object_get(v, name));
}

void
spool_read_state(const char *name, struct spool_state *s)
{
	char *path = path_of(name, ".state"), *line = NULL;
	FILE *f = path != NULL ? fopen(path, "re") : NULL;
	size_t size = 0;
	json_t *v = f != NULL ? load_line(&line, &size, f) : NULL;
	const char *why = json_string_value(json_object_get(v, "why"));

	*s = (struct spool_state){.begun_ms = number_of(v, "begun_ms"),
	    .tried_ms = number_of(v, "tried_ms"),
	    .status = (int)number_of(v, "status"),
	    .why = why != NULL ? mq_xstrdup(why) : NULL};
	json_decref(v);
	free(line);
	if (f != NULL)
		fclose(f);
	free(path);
}

/* Writes all of a text, in one system call. */
static int
write_text(int fd, const struct mq_buf *text)
{
	ssize_t n = write(fd, text->data, text->len);

	if (n == (ssize_t)text->len)
		return 0;
	if (n != -1)
		errno = ENOSPC;
	return -1;
}

int
spool_write_state(const char *name, const struct spool_state *s)
{
	char *path = path_of(name, ".state"), *new = path_of(name, ".begin");
	int fd = -1, rv = -1;
	struct mq_buf text = {0};
	json_t *v = json_object();

	mq_json_set(v, "begun_ms", json_integer(s->begun_ms));
	mq_json_set(v, "tried_ms", json_integer(s->tried_ms));
	mq_json_set(v, "status", json_integer(s->status));
	mq_json_set(v, "why", mq_json_text(s->why));
	mq_json_dump(v, &text);
	mq_buf_addstr(&text, "\n");
	if (path != NULL && new != NULL)
		fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd != -1) {
		rv = write_text(fd, &text) == 0 ? fsync(fd) : -1;
		close(fd);
	}
	if (rv == 0 && (rv = rename(new, path)) == 0)
		rv = sync_folder();
	json_decref(v);
	mq_buf_free(&text);
	free(path);
	free(new);
	return rv;
}

/* A name behind all others, whatever the clock says. */
static char *
new_name(const struct mq_names *names)
{
	struct mq_idgen ids = {0};
	uint64_t us = (uint64_t)mq_clock_unix_us(), last = 0;
	char id[MQ_ID_LEN + 1];

	if (names->n > 0)
		last = mq_id_time(names->list[names->n - 1].name);
	mq_id_make(&ids, MAX(us, last + 1), id);
	return mq_xstrdup(id);
}

int
spool_set_aside(const char *name, const char *why)
{
	const struct spool_state state = {.tried_ms = mq_clock_unix_us() / 1000,
	    .why = (char *)(uintptr_t)why};
	struct mq_names names = {0};
	char *from = path_of(name, ""), *to = path_of(name, ".refused");
	char *other = access(to, F_OK) == 0 ? new_name(&names) : NULL, *aside;
	int rv;

	/* Messages of the file may have been set aside before. */
	if (other != NULL) {
		free(to);
		to = path_of(other, ".refused");
	}
	aside = mq_xasprintf("%s.refused", other != NULL ? other : name);
	rv = from != NULL && to != NULL ? rename(from, to) : -1;
	if (rv == 0)
		rv = spool_write_state(aside, &state);
	(void)unlink_file(name, ".state");
	free(other);
	free(from);
	free(to);
	free(aside);
	return rv;
}

/* --- writing ------------------------------------------------------------------------ */

/* The number of messages is written last, in the place of 20 blanks. */
static void
write_head(struct mq_buf *text, const struct spool_head *h)
{
	json_t *v = json_object();

	mq_json_set(v, "server", mq_json_text(h->server));
	mq_json_set(v, "layout", mq_json_text(h->layout));
	mq_json_set(v, "queue", mq_json_text(h->queue));
	mq_json_set(v, "publisher", mq_json_text(h->publisher));
	mq_json_set(v, "begun", json_integer((json_int_t)h->begun));
	mq_json_set(v, "before", json_integer(h->before));
	mq_json_set(v, "since_ms", json_integer(h->since_ms));
	mq_json_set(v, "begun_ms", json_integer(h->begun_ms));
	mq_json_set(v, "vt_s", json_integer(h->attributes.vt_s));
	mq_json_set(v, "delay_s", json_integer(h->attributes.delay_s));
	mq_json_set(v, "maxsize", json_integer(h->attributes.maxsize));
	mq_json_dump(v, text);
	json_decref(v);
	text->len--;
	mq_buf_printf(text, ",\"messages\":%20lld}\n", h->messages);
}

int
spool_discard(struct spool_writer *w)
{
	int why = errno;

	if (w->file != NULL)
		fclose(w->file);
	unlink(w->path);
	free(w->name);
	free(w->path);
	*w = (struct spool_writer){0};
	errno = why;
	return -1;
}

static int
put(struct spool_writer *w, const char *p, size_t n)
{
	if (n > w->room) {
		errno = EDQUOT;
		return spool_discard(w);
	}
	w->room -= n;
	return fwrite(p, 1, n, w->file) == n ? 0 : spool_discard(w);
}

/* Opens a new file, and locks it; sweep() of another program may have removed it before that. */
static int
open_locked(const char *path)
{
	struct stat st;
	int fd = -1, rv;

	do {
		if (fd != -1)
			close(fd);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd == -1)
			return -1;
		rv = flock(fd, LOCK_EX);
		if (rv == 0)
			rv = fstat(fd, &st);
	} while (rv == 0 && st.st_nlink == 0);
	if (rv == 0)
		return fd;
	close(fd);
	return -1;
}

int
spool_begin(struct spool_writer *w, const struct spool_head *head, size_t max)
{
	struct mq_names names = {0};
	struct mq_buf text = {0};
	size_t used = 0;
	int fd, rv;

	*w = (struct spool_writer){.head = *head};
	if (make_folder() == -1 || look("", &names, &used) == -1)
		return -1;
	w->name = new_name(&names);
	mq_names_free(&names);
	w->path = path_of(w->name, ".new");
	w->room = max > used ? max - used : 0;
	if (w->head.publisher[0] == '\0')
		strlcpy(w->head.publisher, w->name, sizeof(w->head.publisher));
	fd = open_locked(w->path);
	if (fd == -1)
		return spool_discard(w);
	w->file = fdopen(fd, "w");
	write_head(&text, &w->head);
	rv = put(w, text.data, text.len);
	mq_buf_free(&text);
	return rv;
}

void
spool_add(struct mq_buf *text, const char unique[MQ_ID_LEN + 1],
    const struct mq_buf *header, const char *payload, size_t n)
{
	char line[MQ_ID_LEN + sizeof("  \n") + 2 * MQ_DIGITS], *p;

	p = mempcpy(line, unique, MQ_ID_LEN);
	*p++ = ' ';
	p = mq_digits(p, header->len);
	*p++ = ' ';
	p = mq_digits(p, n);
	*p++ = '\n';
	mq_buf_add(text, line, (size_t)(p - line));
	mq_buf_add(text, header->data, header->len);
	mq_buf_add(text, payload, n);
	mq_buf_addstr(text, "\n");
}

static json_t *
json_of(const struct mq_publishing *how, int n)
{
	const struct mq_limits *l = &how->limits;
	json_t *v = json_object();
	/* A delay counts from now on. */
	int64_t ms = how->when.ms +
	    (how->when.kind == MQ_WHEN_IN ? mq_clock_unix_us() / 1000 : 0);

	mq_json_set(v, "n", json_integer(n));
	if (how->when.kind != MQ_WHEN_NOW)
		mq_json_set(v, "at_ms", json_integer(ms));
	mq_json_set(v, "said", json_boolean(how->when.said));
	mq_json_set(v, "options", json_boolean(how->has_options));
	mq_json_set(v, "alike", json_boolean(how->same_header));
	mq_json_set(v, "replace", json_boolean(how->replace));
	mq_json_set(v, "realtime", json_boolean(how->realtime));
	mq_json_set(v, "limits",
	    json_pack("[I,I,I,I]", (json_int_t)l->ready,
		(json_int_t)l->ready_high, (json_int_t)l->delayed,
		(json_int_t)l->delayed_high));
	return v;
}

int
spool_batch(struct spool_writer *w, const struct mq_publishing *how, int n,
    const struct mq_buf *text)
{
	json_t *v = json_of(how, n);
	struct mq_buf line = {0};
	int rv;

	mq_json_dump(v, &line);
	mq_buf_addstr(&line, "\n");
	json_decref(v);
	rv = put(w, line.data, line.len);
	mq_buf_free(&line);
	w->head.messages += n;
	return rv == 0 && n > 0 ? put(w, text->data, text->len) : rv;
}

int
spool_end(struct spool_writer *w, const char *as)
{
	static const struct mq_publishing none;
	struct mq_buf head = {0};
	char *path;
	int rv;

	w->room += 256; /* for the last line */
	if (spool_batch(w, &none, 0, NULL) == -1)
		return -1;
	write_head(&head, &w->head);
	rv = fflush(w->file);
	if (rv == 0 &&
	    pwrite(fileno(w->file), head.data, head.len, 0) !=
		(ssize_t)head.len)
		rv = -1;
	mq_buf_free(&head);
	path = path_of(as != NULL ? as : w->name, "");
	if (rv == 0)
		rv = fsync(fileno(w->file));
	if (rv == 0)
		rv = rename(w->path, path);
	free(path);
	if (rv != 0)
		return spool_discard(w);
	/* Closing frees the lock: nothing is written any more. */
	(void)fclose(w->file);
	free(w->name);
	free(w->path);
	*w = (struct spool_writer){0};
	return sync_folder();
}

/* --- reading -------------------------------------------------------------------------- */

static char *
text_of(const json_t *v, const char *name)
{
	const char *text = json_string_value(json_object_get(v, name));

	return text != NULL ? mq_xstrdup(text) : NULL;
}

#define AHEAD 65536 /* bytes that are read at once */

int
spool_open(struct spool_reader *r, const char *name)
{
	char *path = path_of(name, "");
	struct spool_head *h = &r->head;
	const char *publisher;
	json_t *v;

	*r = (struct spool_reader){
	    .file = path != NULL ? fopen(path, "re") : NULL};
	free(path);
	if (r->file == NULL)
		return -1;
	r->ahead = mq_xmalloc(AHEAD);
	setvbuf(r->file, r->ahead, _IOFBF, AHEAD);
	v = load_line(&r->line, &r->size, r->file);
	publisher = json_string_value(json_object_get(v, "publisher"));
	*h = (struct spool_head){.server = text_of(v, "server"),
	    .layout = text_of(v, "layout"),
	    .queue = text_of(v, "queue"),
	    .begun = (unsigned long)number_of(v, "begun"),
	    .before = number_of(v, "before"),
	    .since_ms = number_of(v, "since_ms"),
	    .begun_ms = number_of(v, "begun_ms"),
	    .attributes = {(long)number_of(v, "vt_s"),
		(long)number_of(v, "delay_s"), (long)number_of(v, "maxsize")},
	    .messages = number_of(v, "messages")};
	if (publisher != NULL)
		strlcpy(h->publisher, publisher, sizeof(h->publisher));
	json_decref(v);
	if (h->server != NULL && h->layout != NULL && h->queue != NULL &&
	    mq_layout_find(h->layout) != NULL &&
	    mq_id_valid(h->publisher, strlen(h->publisher)))
		return 0;
	errno = EILSEQ;
	return -1;
}

int
spool_next(struct spool_reader *r, struct mq_publishing *how)
{
	json_t *v = load_line(&r->line, &r->size, r->file), *limits;
	int64_t n = v != NULL ? number_of(v, "n") : -1;
	const json_t *at = json_object_get(v, "at_ms");
	struct mq_limits *l = &how->limits;

	*how = (struct mq_publishing){
	    .has_options = json_is_true(json_object_get(v, "options")),
	    .when = {at != NULL ? MQ_WHEN_AT : MQ_WHEN_NOW,
		json_integer_value(at),
		json_is_true(json_object_get(v, "said"))},
	    .same_header = json_is_true(json_object_get(v, "alike")),
	    .replace = json_is_true(json_object_get(v, "replace")),
	    .realtime = json_is_true(json_object_get(v, "realtime"))};
	limits = json_object_get(v, "limits");
	l->ready = json_integer_value(json_array_get(limits, 0));
	l->ready_high = json_integer_value(json_array_get(limits, 1));
	l->delayed = json_integer_value(json_array_get(limits, 2));
	l->delayed_high = json_integer_value(json_array_get(limits, 3));
	if (json_array_size(limits) != 4 || n < 0 || n > INT_MAX)
		n = -1;
	json_decref(v);
	r->left = (int)n;
	return r->left;
}

static bool
read_bytes(struct spool_reader *r, struct mq_buf *to, int64_t n)
{
	size_t len = (size_t)n;

	mq_buf_clear(to);
	if (n < 0 || len > LENGTH_MAX)
		return false;
	to->len = n > 0 ? fread(mq_buf_reserve(to, len), 1, len, r->file) : 0;
	return to->len == len;
}

bool
spool_read(struct spool_reader *r, char unique[MQ_ID_LEN + 1])
{
	ssize_t n = getline(&r->line, &r->size, r->file);
	char *header, *payload, *end;

	if (n <= MQ_ID_LEN || !mq_id_valid(r->line, MQ_ID_LEN))
		return false;
	header = r->line + MQ_ID_LEN;
	payload = strchr(header + 1, ' ');
	end = r->line + n - 1;
	if (*header++ != ' ' || payload++ == NULL || *end != '\n')
		return false;
	memcpy(unique, r->line, MQ_ID_LEN);
	unique[MQ_ID_LEN] = '\0';
	r->left--;
	return read_bytes(r, &r->header,
		   mq_number(
		       header, (size_t)(payload - 1 - header), INT64_MAX)) &&
	    read_bytes(r, &r->payload,
		mq_number(payload, (size_t)(end - payload), INT64_MAX)) &&
	    getc(r->file) == '\n';
}

void
spool_close(struct spool_reader *r)
{
	if (r->file != NULL)
		fclose(r->file);
	free(r->ahead);
	free(r->line);
	free(r->head.server);
	free(r->head.layout);
	free(r->head.queue);
	mq_buf_free(&r->header);
	mq_buf_free(&r->payload);
}
