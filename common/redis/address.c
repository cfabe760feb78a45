#include "server.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* The child writes these: an address each, or in the end an error. */
struct piece {
	char address[MQ_ADDRESS_SIZE]; /* empty: none was found */
	int error;		       /* as of getaddrinfo(3), */
	int number;		       /* and of errno */
};

bool
mq_address_is(const char *host)
{
	struct in_addr address;

	/* Only IPv6 has colons, be it with a zone. */
	return strchr(host, ':') != NULL ||
	    inet_pton(AF_INET, host, &address) == 1;
}

/* "localhost" means this machine everywhere, and needs no child (RFC 6761). */
static bool
is_local(const struct mq_addresses *a)
{
	return strcasecmp(a->host, "localhost") == 0;
}

/* --- the child --------------------------------------------------------------- */

static void
send_address(int fd, const struct piece *piece)
{
	if (write(fd, piece, sizeof(*piece)) != (ssize_t)sizeof(*piece))
		_exit(1);
}

/* Returns how many addresses of this family there are. */
static int
find_addresses(const char *host, int family, int fd, struct piece *failure)
{
	const struct addrinfo hints = {
	    .ai_family = family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *one;
	struct piece piece = {0};
	int n = 0, error;

	error = getaddrinfo(host, NULL, &hints, &list);
	if (error != 0) {
		failure->error = error;
		failure->number = errno;
		return 0;
	}
	for (one = list; one != NULL; one = one->ai_next)
		if (getnameinfo(one->ai_addr, one->ai_addrlen, piece.address,
			sizeof(piece.address), NULL, 0, NI_NUMERICHOST) == 0) {
			send_address(fd, &piece);
			n++;
		}
	freeaddrinfo(list);
	return n;
}

/* Sends each address as soon as it is known: a second one may not be needed. */
static void
run_child(const char *host, int fd, pid_t parent)
{
	struct piece failure = {.error = EAI_NONAME};
	int n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	n = find_addresses(host, AF_INET, fd, &failure);
	n += find_addresses(host, AF_INET6, fd, &failure);
	if (n == 0)
		send_address(fd, &failure);
	_exit(0);
}

static void
start_child(struct mq_addresses *a)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1) {
		strlcpy(a->why, strerror(errno), sizeof(a->why));
		return;
	}
	a->pid = fork();
	if (a->pid == 0)
		run_child(a->host, fds[1], parent);
	if (a->pid == -1) {
		strlcpy(a->why, strerror(errno), sizeof(a->why));
		a->pid = 0;
		close(fds[0]);
	}
	close(fds[1]);
	a->fd = fds[0];
}

/* --- asking it ----------------------------------------------------------------- */

void
mq_addresses_begin(struct mq_addresses *a, const char *host, double until)
{
	*a = (struct mq_addresses){.host = host,
	    .until = until,
	    .why = "the search for its address ended early"};
	if (!mq_address_is(host) && !is_local(a))
		start_child(a);
}

static bool
next_known(struct mq_addresses *a, char *address)
{
	static const char *const local[] = {"127.0.0.1", "::1"};
	const char *next = NULL;

	if (mq_address_is(a->host))
		next = a->found == 0 ? a->host : NULL;
	else if (is_local(a) && a->found < 2)
		next = local[a->found];
	if (next == NULL)
		return false;
	a->found++;
	return strlcpy(address, next, MQ_ADDRESS_SIZE) < MQ_ADDRESS_SIZE;
}

/* False: nothing came, or nothing more will. */
static bool
receive_piece(struct mq_addresses *a, struct piece *piece)
{
	struct pollfd pfd = {.fd = a->fd, .events = POLLIN};
	double left = a->until - mq_clock_steady_s();
	int n = poll(&pfd, 1, left > 0 ? (int)(left * 1000) : 0);

	if (n == 1)
		return read(a->fd, piece, sizeof(*piece)) ==
		    (ssize_t)sizeof(*piece);
	strlcpy(a->why,
	    n == -1 ? strerror(errno) :
		      "its name could not be resolved in time",
	    sizeof(a->why));
	return false;
}

bool
mq_addresses_next(struct mq_addresses *a, char *address)
{
	struct piece piece;

	if (a->pid == 0)
		return next_known(a, address);
	if (!receive_piece(a, &piece))
		return false;
	if (piece.address[0] == '\0') {
		strlcpy(a->why,
		    piece.error == EAI_SYSTEM ? strerror(piece.number) :
						gai_strerror(piece.error),
		    sizeof(a->why));
		return false;
	}
	a->found++;
	strlcpy(address, piece.address, MQ_ADDRESS_SIZE);
	return true;
}

void
mq_addresses_end(struct mq_addresses *a)
{
	if (a->pid == 0)
		return;
	close(a->fd);
	kill(a->pid, SIGKILL);
	while (waitpid(a->pid, NULL, 0) == -1 && errno == EINTR)
		;
	a->pid = 0;
}
