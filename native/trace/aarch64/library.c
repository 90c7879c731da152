/* No library is injected on aarch64: every call of interest stops, as those of static programs on x86-64. So
 * there is no call to detour and nothing to set up. */
#include "library/library.h"

void early_set_library(const char *path) { (void)path; }

bool early_enter(struct task *task)
{
	(void)task;
	return false;
}

bool detour_try(struct task *task)
{
	(void)task;
	return false;
}
