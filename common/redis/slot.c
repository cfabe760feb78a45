#include "command.h"

#include <stdint.h>
#include <string.h>

static uint16_t
crc16(const char *p, size_t n)
{
	uint16_t crc = 0;
	int bit;

	for (; n > 0; p++, n--) {
		crc ^= (uint16_t)((unsigned char)*p << 8);
		for (bit = 0; bit < 8; bit++)
			crc =
			    (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
	}
	return crc;
}

int
mq_slot_of(const char *key, size_t n)
{
	const char *open = memchr(key, '{', n), *close = NULL;

	if (open != NULL) {
		open++;
		close = memchr(open, '}', n - (size_t)(open - key));
	}
	if (close != NULL && close > open)
		return crc16(open, (size_t)(close - open)) % MQ_SLOTS;
	return crc16(key, n) % MQ_SLOTS;
}

int
mq_slot_home(const char *ns)
{
	return ns != NULL && strchr(ns, '{') != NULL ?
	    mq_slot_of(ns, strlen(ns)) :
	    -1;
}
