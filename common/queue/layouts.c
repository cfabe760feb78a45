/* The layouts that there are; no layout knows of this file. */
#include <string.h>

#include "queue.h"

const struct mq_layout *
mq_layout_find(const char *name)
{
	static const struct mq_layout *const layouts[] = {
	    &mq_layout_rmq, &mq_layout_rsmq};
	size_t i;

	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (strcmp(layouts[i]->name, name) == 0)
			return layouts[i];
	return NULL;
}
