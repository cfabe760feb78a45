#include "tls.h"

#include <string.h>

/* What each text begins with. */
#define PREFIX "TLS: "

bool
mq_tls_says(const char *why)
{
	return strncmp(why, PREFIX, sizeof(PREFIX) - 1) == 0;
}

#ifdef MQ_TLS

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/exit.h"

#define OTHER_HOST "is for another host; sni=NAME says whose it must be"
#define OTHER_AUTHORITY                                                        \
	"is from an authority that is not trusted; cacert=FILE names one"

int
mq_tls_blame(const struct mq_tls_cause *why, int status, const char *fmt, ...)
{
	size_t n = strlcpy(why->text, PREFIX, why->size);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text + n, why->size - n, fmt, ap);
	va_end(ap);
	return status;
}

/* The server's certificate was not accepted. */
static int
blame_server(long result, const struct mq_tls_cause *why)
{
	static const struct {
		long result;
		const char *text;
	} known[] = {
	    {X509_V_ERR_CERT_HAS_EXPIRED, "has expired"},
	    {X509_V_ERR_CERT_NOT_YET_VALID, "is not valid yet"},
	    {X509_V_ERR_HOSTNAME_MISMATCH, OTHER_HOST},
	    {X509_V_ERR_IP_ADDRESS_MISMATCH, OTHER_HOST},
	    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
		"is self-signed; to trust it, name its file with cacert="},
	    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, OTHER_AUTHORITY},
	    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, OTHER_AUTHORITY},
	    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, OTHER_AUTHORITY},
	    {X509_V_ERR_CERT_SIGNATURE_FAILURE, OTHER_AUTHORITY},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].result == result)
			return mq_tls_blame(why, MQ_EXIT_CONFIG,
			    "the server's certificate %s", known[i].text);
	return mq_tls_blame(why, MQ_EXIT_CONFIG, "the server's certificate: %s",
	    X509_verify_cert_error_string(result));
}

static int
blame_lack(const struct mq_tls_cause *why)
{
	return mq_tls_blame(why, MQ_EXIT_CONFIG,
	    "the server demands a certificate; name its files with cert= and "
	    "key=");
}

/* The alert may be lost behind the end of the connection. */
static int
blame_end(const SSL *ssl, const struct mq_tls_cause *why)
{
	if (SSL_get_app_data(ssl) == NULL)
		return 0;
	if (SSL_get_certificate(ssl) == NULL)
		return blame_lack(why);
	return mq_tls_blame(why, MQ_EXIT_UNAVAILABLE,
	    "the server ended the connection; it may not accept the "
	    "certificate of cert=");
}

/* An alert from the server.  Returns 0 for one that is not about our certificate. */
static int
blame_own(const SSL *ssl, int reason, const struct mq_tls_cause *why)
{
	bool given = SSL_get_certificate(ssl) != NULL;

	if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
		return blame_lack(why);
	/* TLS 1.2 has no better word. */
	if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE && !given)
		return mq_tls_blame(why, MQ_EXIT_CONFIG,
		    "the server refuses the handshake; if it demands a "
		    "certificate, name its files with cert= and key=");
	if (given && reason >= SSL_R_SSLV3_ALERT_BAD_CERTIFICATE &&
	    reason <= SSL_R_TLSV1_ALERT_ACCESS_DENIED)
		return mq_tls_blame(why, MQ_EXIT_CONFIG,
		    "the server refuses the certificate of cert=: %s",
		    ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason)));
	return 0;
}

/* The first error is the cause of the others.  What the server has said before it went
 * may still be unread. */
static unsigned long
find_error(SSL *ssl)
{
	char byte;

	if (ERR_peek_error() == 0 && SSL_is_init_finished(ssl)) {
		fcntl(SSL_get_fd(ssl), F_SETFL, O_NONBLOCK);
		(void)SSL_peek(ssl, &byte, 1);
	}
	return ERR_peek_error();
}

static int
blame_error(const SSL *ssl, unsigned long error, const struct mq_tls_cause *why)
{
	int reason = ERR_GET_REASON(error);
	int status = blame_own(ssl, reason, why);

	if (status != 0)
		return status;
	if (reason == SSL_R_WRONG_VERSION_NUMBER ||
	    reason == SSL_R_PACKET_LENGTH_TOO_LONG)
		return mq_tls_blame(why, MQ_EXIT_CONFIG,
		    "the server does not speak it; a server without TLS takes "
		    "redis://");
	return mq_tls_blame(why,
	    SSL_is_init_finished(ssl) ? MQ_EXIT_UNAVAILABLE : MQ_EXIT_CONFIG,
	    "%s", ERR_reason_error_string(error));
}

int
mq_tls_failure(mq_tls *tls, bool early, char *text, size_t size)
{
	const struct mq_tls_cause why = {text, size};
	unsigned long error;
	long result;
	int status = 0;

	if (tls == NULL)
		return 0;
	error = find_error(tls);
	result = SSL_get_verify_result(tls);
	if (!SSL_is_init_finished(tls) && result != X509_V_OK &&
	    SSL_get_verify_mode(tls) != SSL_VERIFY_NONE)
		status = blame_server(result, &why);
	else if (error != 0 && ERR_GET_LIB(error) == ERR_LIB_SSL)
		status = blame_error(tls, error, &why);
	else if (early)
		status = blame_end(tls, &why);
	ERR_clear_error();
	return status;
}

#else

int
mq_tls_failure(mq_tls *tls, bool early, char *why, size_t size)
{
	(void)tls;
	(void)early;
	(void)why;
	(void)size;
	return 0;
}

#endif
