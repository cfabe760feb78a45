/*
 * Preloaded into a tool, answers for the host mq.test: as the file RESOLVER says
 * at that time, "hang" for ever, "again" with a failure, or with addresses.
 */
#include <sys/types.h>

#include <sys/socket.h>

#include <dlfcn.h>
#include <netdb.h>
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

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
    struct addrinfo **list)
{
	getaddrinfo_fn *real;
	char text[256] = "";
	FILE *f;
	int error;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (strcmp(host, "mq.test") != 0)
		return real(host, service, hints, list);
	f = fopen(getenv("RESOLVER"), "re");
	if (f != NULL && fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
	while (strncmp(text, "hang", 4) == 0)
		pause();
	if (strncmp(text, "again", 5) == 0)
		return EAI_AGAIN;
	error = numbers(real, text, service, hints, list);
	return error == 0 && *list == NULL ? EAI_NONAME : error;
}
