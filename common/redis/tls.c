/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "parts.h"

#ifdef MQ_TLS

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/exit.h"

/* --- errors ----------------------------------------------------------------- */

#define OTHER_HOST "is for another host; sni=NAME says whose it must be"
#define OTHER_AUTHORITY                                                        \
	"is from an authority that is not trusted; cacert=FILE names one"
#define DEMANDED                                                               \
	"the server demands a certificate; name its files with cert= and key="

static int __attribute__((format(printf, 3, 4)))
blame(char *why, int status, const char *fmt, ...)
{
	size_t n = strlcpy(why, MQ_TLS_ERROR, MQ_TLS_WHY);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why + n, MQ_TLS_WHY - n, fmt, ap);
	va_end(ap);
	return status;
}

/* The error of a server's certificate that was not accepted. */
static int
blame_server(long result, char *why)
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
			return blame(why, MQ_EXIT_CONFIG,
			    "the server's certificate %s", known[i].text);
	return blame(why, MQ_EXIT_CONFIG, "the server's certificate: %s",
	    X509_verify_cert_error_string(result));
}

/* An error of OpenSSL, or an alert from the server. */
static int
blame_error(const SSL *ssl, unsigned long error, char *why)
{
	bool given = SSL_get_certificate(ssl) != NULL;
	int reason = ERR_GET_REASON(error);

	if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
		return blame(why, MQ_EXIT_CONFIG, DEMANDED);
	/* TLS 1.2 has no better alert for a missing certificate. */
	if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE && !given)
		return blame(why, MQ_EXIT_CONFIG,
		    "the server refuses the handshake; if it demands a "
		    "certificate, name its files with cert= and key=");
	if (given && reason >= SSL_R_SSLV3_ALERT_BAD_CERTIFICATE &&
	    reason <= SSL_R_TLSV1_ALERT_ACCESS_DENIED)
		return blame(why, MQ_EXIT_CONFIG,
		    "the server refuses the certificate of cert=: %s",
		    ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason)));
	if (reason == SSL_R_WRONG_VERSION_NUMBER ||
	    reason == SSL_R_PACKET_LENGTH_TOO_LONG)
		return blame(why, MQ_EXIT_CONFIG,
		    "the server does not speak it; a server without TLS takes "
		    "redis://");
	return blame(why,
	    SSL_is_init_finished(ssl) ? MQ_EXIT_UNAVAILABLE : MQ_EXIT_CONFIG,
	    "%s", ERR_reason_error_string(error));
}

int
mq_tls_failure(mq_tls *tls, bool early, char why[MQ_TLS_WHY])
{
	unsigned long error;
	long result;
	int status = 0;
	char byte;

	if (tls == NULL)
		return 0;
	/* The server's last alert may still be unread. */
	if (ERR_peek_error() == 0 && SSL_is_init_finished(tls)) {
		fcntl(SSL_get_fd(tls), F_SETFL, O_NONBLOCK);
		(void)SSL_peek(tls, &byte, 1);
	}
	/* The first error is the cause of the others. */
	error = ERR_peek_error();
	result = SSL_get_verify_result(tls);
	if (!SSL_is_init_finished(tls) && result != X509_V_OK &&
	    SSL_get_verify_mode(tls) != SSL_VERIFY_NONE)
		status = blame_server(result, why);
	else if (error != 0 && ERR_GET_LIB(error) == ERR_LIB_SSL)
		status = blame_error(tls, error, why);
	/* The alert may be lost with the connection. */
	else if (early && SSL_get_app_data(tls) != NULL)
		status = SSL_get_certificate(tls) == NULL ?
		    blame(why, MQ_EXIT_CONFIG, DEMANDED) :
		    blame(why, MQ_EXIT_UNAVAILABLE,
			"the server ended the connection; it may not accept the "
			"certificate of cert=");
	ERR_clear_error();
	return status;
}

/* --- files ------------------------------------------------------------------ */

/* Otherwise OpenSSL would ask on the terminal. */
static int
refuse_passphrase(char *buf, int size, int writing, void *asked)
{
	(void)buf;
	(void)size;
	(void)writing;
	*(bool *)asked = true;
	return -1;
}

/* The error of a file: that of open(2), or else OpenSSL's problem. */
static int
blame_file(
    char *why, const char *parameter, const char *path, const char *problem)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool short_of = fd == -1 && (errno == EMFILE || errno == ENFILE);

	if (fd == -1)
		problem = strerror(errno);
	else
		close(fd);
	return blame(why, short_of ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
	    "%s=%s: %s", parameter, path, problem);
}

/* Loads the key first: OpenSSL drops a key that does not fit the certificate. */
static int
load_files(SSL_CTX *ctx, const struct mq_url *u, char *why)
{
	bool asked = false;

	if (!u->insecure && u->cacert != NULL &&
	    SSL_CTX_load_verify_file(ctx, u->cacert) != 1)
		return blame_file(
		    why, "cacert", u->cacert, "holds no certificate");
	if (u->cert == NULL && u->key == NULL)
		return 0;
	if (u->cert == NULL || u->key == NULL)
		return blame(why, MQ_EXIT_CONFIG,
		    "cert= and key= are given together or not at all");
	SSL_CTX_set_default_passwd_cb(ctx, refuse_passphrase);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, &asked);
	if (SSL_CTX_use_PrivateKey_file(ctx, u->key, SSL_FILETYPE_PEM) != 1)
		return blame_file(why, "key", u->key,
		    asked ? "needs a passphrase; use a key without one" :
			    "holds no private key");
	if (SSL_CTX_use_certificate_chain_file(ctx, u->cert) != 1)
		return blame_file(why, "cert", u->cert, "holds no certificate");
	if (SSL_CTX_check_private_key(ctx) != 1)
		return blame(why, MQ_EXIT_CONFIG,
		    "key=%s: does not belong to the certificate in %s", u->key,
		    u->cert);
	return 0;
}

/* Notes that the server has asked for a certificate. */
static int
on_asked(SSL *ssl, void *arg)
{
	(void)arg;
	SSL_set_app_data(ssl, ssl);
	return 1;
}

/* --- beginning -------------------------------------------------------------- */

/* Returns 0, or the status; *ssl is not to be freed if it is NULL. */
static int
make_ssl(const struct mq_url *u, const char *name, SSL **ssl, char *why)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char ip[MQ_ADDRESS_SIZE]; /* certificates know no zones */
	bool named;
	int status = 0;

	if (ctx != NULL && (status = load_files(ctx, u, why)) == 0) {
		if (!u->insecure)
			SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		if (!u->insecure && u->cacert == NULL)
			(void)SSL_CTX_set_default_verify_paths(ctx);
		SSL_CTX_set_cert_cb(ctx, on_asked, NULL);
		SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
		/* Without renegotiation, a write waits for nothing but room.  A missing
		 * close_notify is no error: RESP cannot take the end of a connection for
		 * that of a reply. */
		SSL_CTX_set_options(ctx,
		    SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
		*ssl = SSL_new(ctx);
	}
	SSL_CTX_free(ctx);
	if (status != 0)
		return status;
	if (*ssl == NULL)
		return blame(why, MQ_EXIT_CONFIG, "%s",
		    ERR_reason_error_string(ERR_peek_error()));
	SSL_set_hostflags(*ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	snprintf(ip, sizeof(ip), "%.*s", (int)strcspn(name, "%"), name);
	named = mq_address_is(name) ?
	    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(*ssl), ip) == 1 :
	    SSL_set1_host(*ssl, name) == 1 &&
		SSL_set_tlsext_host_name(*ssl, name) == 1;
	return named ?
	    0 :
	    blame(why, MQ_EXIT_CONFIG,
		"%s: no name or address that a certificate can be for", name);
}

int
mq_tls_start(mq_tls **tls, redisContext *c, const struct mq_url *u,
    const char *host, char why[MQ_TLS_WHY])
{
	SSL *ssl = *tls;
	int rv, cause, status = 0;
	bool failed = false;

	if (ssl == NULL)
		status = make_ssl(u, u->sni != NULL ? u->sni : host, &ssl, why);
	/* mq_tls_failure() would report an older error. */
	ERR_clear_error();
	errno = 0;
	if (status == 0 && *tls == NULL) {
		failed = redisInitiateSSL(c, ssl) != REDIS_OK;
		*tls = failed ? NULL : ssl;
	} else if (status == 0 && (rv = SSL_do_handshake(ssl)) != 1) {
		rv = SSL_get_error(ssl, rv);
		failed =
		    rv != SSL_ERROR_WANT_READ && rv != SSL_ERROR_WANT_WRITE;
	}
	cause = errno;
	if (failed)
		status = mq_tls_failure(ssl, false, why);
	/* A failure of the socket is no error of TLS. */
	if (failed && status == 0) {
		status = blame(
		    why, MQ_EXIT_UNAVAILABLE, "the server ended the handshake");
		if (cause != 0)
			strlcpy(why, strerror(cause), MQ_TLS_WHY);
	}
	if (*tls == NULL)
		SSL_free(ssl);
	if (status != 0)
		return status;
	return SSL_is_init_finished(ssl) ? 0 : -1;
}

bool
mq_tls_wants_room(const mq_tls *tls)
{
	return SSL_want_write(tls);
}

#endif
