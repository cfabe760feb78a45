/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Preloaded into a tool, answers for the host mq.test: as the file RESOLVER says
 * at that time, "hang" for ever, "again" with a failure, or with addresses; behind
 * them, "hang" is about those of IPv6.  RESOLVER.hangs says that something hangs.
 * With "full", there is no room for one more thread.
 */
#include <sys/types.h>

#include <sys/socket.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int getaddrinfo_fn(
    const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int
numbers(getaddrinfo_fn *real, char *words, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
	struct addrinfo number = *hints;
	char *word;

	number.ai_flags |= AI_NUMERICHOST;
	*list = NULL;
	while ((word = strsep(&words, " \n")) != NULL) {
		if (*word == '\0' || real(word, service, &number, list) != 0)
			continue;
		while (*list != NULL)
			list = &(*list)->ai_next;
	}
	return 0;
}

/* What the file says. */
static void
look(char text[256])
{
	FILE *f = fopen(getenv("RESOLVER"), "re");

	if (f == NULL || fgets(text, 256, f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
}

static void
hang(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s.hangs", getenv("RESOLVER"));
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	for (;;)
		pause();
}

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
    struct addrinfo **list)
{
	getaddrinfo_fn *real;
	char text[256], *hangs;
	int error;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (strcmp(host, "mq.test") != 0)
		return real(host, service, hints, list);
	look(text);
	hangs = strstr(text, "hang");
	if (hangs != NULL && (hangs == text || hints->ai_family == AF_INET6))
		hang();
	if (hangs != NULL)
		*hangs = '\0';
	if (strncmp(text, "again", 5) == 0)
		return EAI_AGAIN;
	error = numbers(real, text, service, hints, list);
	return error == 0 && *list == NULL ? EAI_NONAME : error;
}

typedef int pthread_create_fn(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg)
{
	pthread_create_fn *real;
	char text[256];

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	look(text);
	return strncmp(text, "full", 4) == 0 ? EAGAIN :
					       real(thread, attr, fn, arg);
}
