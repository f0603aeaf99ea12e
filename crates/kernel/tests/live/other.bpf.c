/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Another program on the same cgroup: it asks for callbacks of its own, answers that connections are to ask for ECN, and counts its calls. */
#include <linux/bpf.h>

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) type *name

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const callbacks_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;

struct { UINT(type, BPF_MAP_TYPE_ARRAY); UINT(max_entries, 32); TYPE(key, u32); TYPE(value, u64); } calls SEC(".maps");

SEC("sockops") int other(struct bpf_sock_ops *ctx)
{
	u32 op = ctx->op;
	u64 *count = map_lookup(&calls, &op);

	if (count)
		__sync_fetch_and_add(count, 1);
	if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		callbacks_set(ctx, BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG);
	if (op == BPF_SOCK_OPS_NEEDS_ECN)
		ctx->reply = 1;
	return 1;
}

char other_license[] SEC("license") = "Dual BSD/GPL";
