#include "password.h"

#include <string.h>

void
mq_password_find(const char *s, size_t *start, size_t *len)
{
	const char *p = s, *at, *colon;
	size_t n;

	*start = *len = 0;
	while ((p = strstr(p, "://")) != NULL) {
		p += 3;
		n = strcspn(p, "/");
		at = memrchr(p, '@', n);
		if (at == NULL)
			continue;
		colon = memchr(p, ':', (size_t)(at - p));
		if (colon == NULL)
			continue;
		*start = (size_t)(colon + 1 - s);
		*len = (size_t)(at - colon - 1);
		return;
	}
}

void
mq_password_hide(char *s)
{
	size_t start, len, shown;

	mq_password_find(s, &start, &len);
	shown = len < 3 ? len : 3;
	memset(s + start, '*', shown);
	memmove(
	    s + start + shown, s + start + len, strlen(s + start + len) + 1);
}
