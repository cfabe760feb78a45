/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What a program that was compiled with -fsanitize-coverage=trace-pc reached: the
 * file PROGRAM.reach has a byte for each byte of its code, 1 behind each call of the
 * function below.  The file is mapped, so a process that is killed has noted all.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

extern char __executable_start[], etext[];
void __sanitizer_cov_trace_pc(void);

static char *reached;

__attribute__((constructor)) static void
map_file(void)
{
	size_t size = (size_t)(etext - __executable_start);
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 7);
	void *map;
	int fd;

	if (n < 0)
		return;
	snprintf(path + n, 7, ".reach");
	if ((fd = open(path, O_RDWR)) < 0)
		return;
	map = ftruncate(fd, (off_t)size) == 0 ?
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) :
	    MAP_FAILED;
	close(fd);
	if (map != MAP_FAILED)
		reached = map;
}

void
__sanitizer_cov_trace_pc(void)
{
	if (reached != NULL)
		reached[(char *)__builtin_return_address(0) -
		    __executable_start] = 1;
}
