/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The one table of exit statuses, shared by all tools; see mq(7). */
#ifndef MQ_EXIT_H
#define MQ_EXIT_H

enum mq_exit {
	MQ_EXIT_OK = 0,		  /* done as asked */
	MQ_EXIT_NO = 1,		  /* the documented negative answer */
	MQ_EXIT_USAGE = 64,	  /* called the wrong way */
	MQ_EXIT_DATA = 65,	  /* bad input data */
	MQ_EXIT_UNAVAILABLE = 69, /* the server cannot be reached */
	MQ_EXIT_BUG = 70,	  /* a mistake of ours */
	MQ_EXIT_IO = 74,	  /* reading or writing a file failed */
	MQ_EXIT_AGAIN = 75,	  /* not now: try again later */
	MQ_EXIT_WRONGTYPE = 76,	  /* the server holds something else there */
	MQ_EXIT_NOPERM = 77,	  /* not permitted */
	MQ_EXIT_CONFIG = 78	  /* something is set up wrongly */
};

#endif
