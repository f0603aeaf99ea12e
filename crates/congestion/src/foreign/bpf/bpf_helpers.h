/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The macros of libbpf and the helpers of BPF, as far as congestion control may call them.
 *
 * Natively a helper is one of three: it reads the socket whose hook runs; it returns what it does in a kernel where
 * nothing else is set up (a warning at its line); or it is not supported (an error at its line, unless it is unreachable).
 */
#ifndef OPENTCP_BPF_HELPERS_H
#define OPENTCP_BPF_HELPERS_H

#include "../vmlinux.h"

#define SEC(name) __attribute__((section(name), used))

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name
#define __array(name, value) __typeof__(value) *name[]
#define __ulong(name, value) enum { name##_value = (value) } name

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#endif
#ifndef barrier
#define barrier() asm volatile("" ::: "memory")
#endif
#ifndef barrier_var
#define barrier_var(variable) asm volatile("" : "+r"(variable))
#endif
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))

enum libbpf_tristate {
	TRI_NO = 0,
	TRI_YES = 1,
	TRI_MODULE = 2,
};

#if defined(__bpf__)

#define __kconfig __attribute__((section(".kconfig")))
#define __ksym __attribute__((section(".ksyms")))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __bpf_unreachable() __builtin_trap()
#define bpf_unreachable() __builtin_trap()

/* By their numbers in the kernel's interface. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *format, __u32 size, ...) = (void *)6;
static __u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_perf_event_output)(void *ctx, void *map, __u64 flags, void *data, __u64 size) = (void *)25;
static long (*const bpf_setsockopt)(void *sk, int level, int name, void *value, int size) = (void *)49;
static long (*const bpf_getsockopt)(void *sk, int level, int name, void *value, int size) = (void *)57;
static long (*const bpf_spin_lock)(void *lock) = (void *)93;
static long (*const bpf_spin_unlock)(void *lock) = (void *)94;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;
static long (*const bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static long (*const bpf_tcp_send_ack)(void *tp, __u32 rcv_nxt) = (void *)116;
static __u64 (*const bpf_jiffies64)(void) = (void *)118;
static __u64 (*const bpf_get_socket_cookie)(void *sk) = (void *)46;
static __u64 (*const bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*const bpf_ringbuf_output)(void *map, void *data, __u64 size, __u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *map, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
static long (*const bpf_timer_init)(void *timer, void *map, __u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(void *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(void *timer, __u64 nsecs, __u64 flags) = (void *)171;
static long (*const bpf_loop)(__u32 times, void *callback, void *ctx, __u64 flags) = (void *)181;

#define bpf_printk(format, ...) ({                                          \
	static const char cc_format[] = format;                             \
	bpf_trace_printk(cc_format, sizeof(cc_format), ##__VA_ARGS__);      \
})

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;

#define bpf_for(i, start, end)                                                                             \
	for (struct bpf_iter_num cc_it __attribute__((cleanup(bpf_iter_num_destroy))),                     \
	     *cc_begun __attribute__((unused)) = (bpf_iter_num_new(&cc_it, (start), (end)), &cc_it);       \
	     ({ int *cc_i = bpf_iter_num_next(&cc_it); if (cc_i) (i) = *cc_i; cc_i; });)
#define bpf_repeat(times)                                                                                  \
	for (struct bpf_iter_num cc_it __attribute__((cleanup(bpf_iter_num_destroy))),                     \
	     *cc_begun __attribute__((unused)) = (bpf_iter_num_new(&cc_it, 0, (times)), &cc_it);           \
	     bpf_iter_num_next(&cc_it);)

#else

#define __kconfig
#define __ksym
#define __kptr
#define __bpf_unreachable() __builtin_trap()
#define bpf_unreachable() __builtin_trap()

#define CC_HELPER static inline __attribute__((always_inline, unused))

/* ---- Values of the socket ---- */

/* The host's tick is a millisecond: lsndtime and snd_cwnd_stamp count the same. */
CC_HELPER __u64 bpf_jiffies64(void)
{
	return ((struct tcp_sock *)cc_current)->tcp_mstamp / 1000;
}

CC_HELPER __u64 bpf_ktime_get_ns(void)
{
	return ((struct tcp_sock *)cc_current)->tcp_mstamp * 1000;
}

CC_HELPER __u64 bpf_ktime_get_boot_ns(void) { return bpf_ktime_get_ns(); }
CC_HELPER __u64 bpf_ktime_get_coarse_ns(void) { return bpf_ktime_get_ns(); }
CC_HELPER __u32 bpf_get_prandom_u32(void) { return cc_native_random_u32(cc_current); }

CC_HELPER long bpf_tcp_send_ack(void *tp, __u32 rcv_nxt)
{
	cc_native_tcp_send_ack_at(tp, rcv_nxt);
	return 0;
}

CC_HELPER long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	__builtin_memcpy(to, from, size);
	return 0;
}

CC_HELPER long bpf_loop(__u32 times, void *callback, void *ctx, __u64 flags)
{
	long (*body)(__u64 i, void *ctx) = (long (*)(__u64, void *))callback;

	(void)flags;
	for (__u32 i = 0; i < times; i++)
		if (body(i, ctx))
			return i + 1;
	return times;
}

#define bpf_for(i, start, end) for ((i) = (start); (i) < (end); (i)++)
#define bpf_repeat(times) for (int cc_i = 0; cc_i < (times); cc_i++)

/* Debugging output is checked, and not printed. */
static inline __attribute__((unused, format(printf, 1, 2))) void cc_not_printed(const char *format, ...) { (void)format; }
#define bpf_printk(format, ...) ({ if (0) cc_not_printed(format, ##__VA_ARGS__); 0L; })
#define bpf_trace_printk(format, size, ...) ({ (void)(size); if (0) cc_not_printed(format, ##__VA_ARGS__); 0L; })

/* ---- Values of a kernel where nothing else is set up: kfuncs.c ---- */

#define CC_ANSWERED(what) __attribute__((weak, visibility("hidden"), warning(what)))

extern long bpf_setsockopt(void *sk, int level, int name, void *value, int size)
	CC_ANSWERED("in the simulator it answers -524 (ENOTSUPP): a hook cannot change a socket option there");
extern long bpf_getsockopt(void *sk, int level, int name, void *value, int size)
	CC_ANSWERED("in the simulator it answers -524 (ENOTSUPP): a hook cannot ask for a socket option there");
extern void *cc_no_stored_value(void *sk)
	CC_ANSWERED("in the simulator it answers NULL: no other program has stored anything with the socket");

CC_HELPER long bpf_sk_storage_delete(void *map, void *sk)
{
	(void)map, (void)sk;
	return -2;	/* ENOENT */
}

/* ---- Not offered ---- */

#define CC_NOT_OFFERED(what) __attribute__((error(what)))
#define CC_NO_MAPS CC_NOT_OFFERED("maps are not supported; state is 104 bytes per socket, inet_csk_ca(sk), and constants")
#define CC_NO_TIMERS CC_NOT_OFFERED("timers are not supported; a hook sees the time as tcp_sk(sk)->tcp_mstamp (us)")
#define CC_NO_LOCKS CC_NOT_OFFERED("locks are not supported; a hook is alone with its socket")
#define CC_NO_STORAGE CC_NOT_OFFERED("making storage for a socket is not supported; 104 bytes are there, inet_csk_ca(sk)")
#define CC_NO_SYSTEM CC_NOT_OFFERED("there is no system around a simulated socket; only the fields of struct tcp_sock")

extern void *bpf_map_lookup_elem(void *map, const void *key) CC_NO_MAPS;
extern long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags) CC_NO_MAPS;
extern long bpf_map_delete_elem(void *map, const void *key) CC_NO_MAPS;
extern long bpf_perf_event_output(void *ctx, void *map, __u64 flags, void *data, __u64 size) CC_NO_MAPS;
extern long bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags) CC_NO_MAPS;
extern void *bpf_ringbuf_reserve(void *map, __u64 size, __u64 flags) CC_NO_MAPS;
extern void bpf_ringbuf_submit(void *data, __u64 flags) CC_NO_MAPS;
extern void bpf_ringbuf_discard(void *data, __u64 flags) CC_NO_MAPS;
extern long bpf_timer_init(void *timer, void *map, __u64 flags) CC_NO_TIMERS;
extern long bpf_timer_set_callback(void *timer, void *callback) CC_NO_TIMERS;
extern long bpf_timer_start(void *timer, __u64 nsecs, __u64 flags) CC_NO_TIMERS;
extern long bpf_spin_lock(void *lock) CC_NO_LOCKS;
extern long bpf_spin_unlock(void *lock) CC_NO_LOCKS;
extern __u32 bpf_get_smp_processor_id(void) CC_NO_SYSTEM;
extern __u64 bpf_get_current_pid_tgid(void) CC_NO_SYSTEM;
extern __u64 bpf_get_socket_cookie(void *sk) CC_NO_SYSTEM;
extern void *cc_stored_value_made(void) CC_NO_STORAGE;

/* A lookup of storage finds none; creating it is not supported. */
#define bpf_sk_storage_get(map, sk, value, flags) \
	((void)(map), (void)(value), ((flags) & BPF_SK_STORAGE_GET_F_CREATE) ? cc_stored_value_made() : cc_no_stored_value(sk))

#endif

/* Opaque to programs. */
struct bpf_spin_lock {
	__u32 opaque;
};

struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

#endif
