/* Names of signals; sigabbrev_np(3) is in glibc 2.32 and later only. */
#ifndef MQ_SIGNAME_H
#define MQ_SIGNAME_H

/* The name without SIG, constant text; NULL: the number has none. */
const char *mq_signal_name(int sig);

#endif
