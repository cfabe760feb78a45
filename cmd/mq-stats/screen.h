/*
 * The terminal as a full screen: the alternate one, keys without echo.  It is as it
 * was before whenever the program ends or is stopped.
 */
#ifndef MQ_STATS_SCREEN_H
#define MQ_STATS_SCREEN_H

#include <stdint.h>

void screen_enter(void);
void screen_leave(void);
/* Waits for a key (returned), a signal that wants the screen drawn anew (0), or
 * the time to be over (-1). */
int screen_wait(int64_t ms);

#endif
