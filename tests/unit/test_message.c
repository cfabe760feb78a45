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
	assert_true(plain(B("")));
	assert_true(plain(B("raw")));
	assert_true(plain(B("\0\xff")));
	assert_true(plain(B("{\"Mq-Id\":[\"" ID "\"]}\n")));
	assert_true(plain(B(PLAIN)));
	assert_true(plain(B(PLAIN "payload")));
	assert_true(plain(B(PLAIN "\n\0" PLAIN)));
}

TEST(others)
{
	assert_false(plain(B("\xff")));
	assert_false(plain(B(SIG)));
	assert_false(plain(B(SIG "{}\nx")));
	assert_false(plain(B(SIG "null\nx")));
	assert_false(plain(B(SIG "{ \"Mq-Id\":[\"" ID "\"]}\nx")));
	assert_false(plain(B(SIG "{\"Mq-Id\":[\"" ID "\"],\"A\":[\"b\"]}\nx")));
	assert_false(plain(B(SIG "{\"Mq-Id\":[\"" ID "\",\"" ID "\"]}\nx")));
	assert_false(plain(B(SIG "{\"Mq-Id\":[\"\\n" ID "\"]}\nx")));
}

TEST(cut_off_and_changed)
{
	char element[] = PLAIN "x";
	size_t i, n = sizeof(PLAIN) - 1;
	int c;

	for (i = 1; i < n; i++)
		assert_false(plain(element, i));
	for (i = 0; i < n; i++)
		for (c = 1; c < 256; c++) {
			element[i] ^= (char)c;
			(void)plain(element, sizeof(element) - 1);
			element[i] ^= (char)c;
		}
}
