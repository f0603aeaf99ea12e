/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Of the module average.c, for modules that take its functions. */
struct average {
	u32 rtt_us;
	u32 samples;
};

u32 average_add(struct average *average, u32 rtt_us);
