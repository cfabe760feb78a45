#include "server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define HOST_MAX 255

static const char host_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz0123456789._-";

static const char *
parse_port(const char *s, size_t n, int *port)
{
	if (n > 0 && n <= 5 && strspn(s, "0123456789") == n) {
		*port = atoi(s);
		if (*port >= 1 && *port <= 65535)
			return NULL;
	}
	return "port is not a number from 1 to 65535";
}

/* [IPv6], without the brackets */
static const char *
check_ipv6(const char *s, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (n >= sizeof(text))
		return "no IPv6 address in []";
	memcpy(text, s, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, &addr) != 1)
		return "no IPv6 address in []";
	return NULL;
}

static const char *
check_name(const char *s, size_t n)
{
	size_t i;

	if (n == 0)
		return "no host";
	if (n > HOST_MAX)
		return "host name too long";
	for (i = 0; i < n; i++)
		if (strchr(host_chars, s[i]) == NULL)
			return "host has an invalid character";
	return NULL;
}

const char *
mq_host_parse(
    const char *s, size_t n, const char **host, size_t *len, int *port)
{
	const char *end = s + n, *rest, *why;

	*host = s;
	if (n > 0 && *s == '[') {
		rest = memchr(s, ']', n);
		if (rest == NULL)
			return "host has [ but no ]";
		*host = s + 1;
		*len = (size_t)(rest++ - *host);
		why = check_ipv6(*host, *len);
	} else {
		rest = memchr(s, ':', n);
		if (rest == NULL)
			rest = end;
		if (memchr(rest, ':', (size_t)(end - rest)) !=
		    memrchr(rest, ':', (size_t)(end - rest)))
			return "more than one : in a host; an IPv6 address "
			       "goes in []";
		*len = (size_t)(rest - s);
		why = check_name(s, *len);
	}
	if (why != NULL || rest == end)
		return why;
	if (*rest != ':')
		return "unexpected text between ] and the port";
	return parse_port(rest + 1, (size_t)(end - rest - 1), port);
}
