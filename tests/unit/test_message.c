/* What we write on messages: common/message/headers.c. */
#include "message/headers.h"

#include "unit.h"

#define SIG   "\xff\0\xbe\xbe\x4a"
#define ID    "hodmyf8sioWKpTZdTJhV6jk012ArGE5x"
#define PLAIN SIG "{\"Mq-Id\":[\"" ID "\"]}\n"

/* Whether the short way takes it; then the long one finds the same. */
static bool
plain(const char *p, size_t n)
{
	/* A copy of the exact size, so that a sanitizer sees an overrun. */
	char *copy = malloc(n > 0 ? n : 1), id[MQ_ID_LEN + 1];
	struct mq_envelope e, parsed;
	const char *why, *found;
	bool taken;

	memcpy(copy, p, n);
	taken = mq_message_plain(copy, n, id, &e);
	if (taken) {
		assert_int_equal(mq_envelope_parse(copy, n, &parsed, &why), 0);
		assert_null(e.headers);
		assert_ptr_equal(e.payload, parsed.payload);
		assert_int_equal(e.payload_len, parsed.payload_len);
		found = mq_message_id(&parsed);
		assert_string_equal(id, found != NULL ? found : "");
		assert_int_equal(found == NULL, parsed.headers == NULL);
		mq_envelope_free(&parsed);
	}
	free(copy);
	return taken;
}

TEST(plain_ones)
{
	static const struct bytes yes[] = {{B("")}, {B("raw")}, {B("\0\xff")},
	    {B("{\"Mq-Id\":[\"" ID "\"]}\n")}, {B(PLAIN)}, {B(PLAIN "payload")},
	    {B(PLAIN "\n\0" PLAIN)}};
	static const struct bytes no[] = {{B("\xff")}, {B(SIG)},
	    {B(SIG "{}\nx")}, {B(SIG "null\nx")},
	    {B(SIG "{ \"Mq-Id\":[\"" ID "\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"" ID "\"],\"A\":[\"b\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"" ID "\",\"" ID "\"]}\nx")},
	    {B(SIG "{\"Mq-Id\":[\"\\n" ID "\"]}\nx")}};
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		assert_true(plain(yes[i].p, yes[i].n));
	for (i = 0; i < COUNT(no); i++)
		assert_false(plain(no[i].p, no[i].n));
}
