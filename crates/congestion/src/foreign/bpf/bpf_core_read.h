/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads that find a field on any kernel. Natively there is one layout, and they are plain reads. */
#ifndef OPENTCP_BPF_CORE_READ_H
#define OPENTCP_BPF_CORE_READ_H

#include "../vmlinux.h"
#include "bpf_helpers.h"

/* p->a->b->c, for up to six fields */
#define CC_HOPS_1(p, a) (p)->a
#define CC_HOPS_2(p, a, b) CC_HOPS_1(CC_HOPS_1(p, a), b)
#define CC_HOPS_3(p, a, b, c) CC_HOPS_1(CC_HOPS_2(p, a, b), c)
#define CC_HOPS_4(p, a, b, c, d) CC_HOPS_1(CC_HOPS_3(p, a, b, c), d)
#define CC_HOPS_5(p, a, b, c, d, e) CC_HOPS_1(CC_HOPS_4(p, a, b, c, d), e)
#define CC_HOPS_6(p, a, b, c, d, e, f) CC_HOPS_1(CC_HOPS_5(p, a, b, c, d, e), f)
#define CC_HOPS_PICK(_1, _2, _3, _4, _5, _6, name, ...) name
#define CC_HOPS(p, ...)                                                                                  \
	CC_HOPS_PICK(__VA_ARGS__, CC_HOPS_6, CC_HOPS_5, CC_HOPS_4, CC_HOPS_3, CC_HOPS_2, CC_HOPS_1)      \
	(p, __VA_ARGS__)

/* Pointers that a hook is given may be followed directly in BPF too: the verifier knows their types. */
#define BPF_CORE_READ(p, ...) (CC_HOPS(p, __VA_ARGS__))
#define BPF_CORE_READ_INTO(to, p, ...) ({ *(to) = CC_HOPS(p, __VA_ARGS__); 0; })
#define BPF_PROBE_READ(p, ...) BPF_CORE_READ(p, __VA_ARGS__)
#define BPF_PROBE_READ_INTO(to, p, ...) BPF_CORE_READ_INTO(to, p, __VA_ARGS__)
#define bpf_core_cast(p, type) ((__typeof__(type) *)(p))

#if defined(__bpf__)

/* Load the byte that CO-RE names, then shift the field out of it. */
#define BPF_CORE_READ_BITFIELD(object, field) ({                                                 \
	_Pragma("clang diagnostic push")                                                         \
	_Pragma("clang diagnostic ignored \"-Wdeprecated-declarations\"")                        \
	const u8 *cc_byte = (const u8 *)(object) + __builtin_preserve_field_info((object)->field, 0); \
	asm volatile("" : "+r"(cc_byte));                                                        \
	u64 cc_value = *cc_byte;                                                                 \
	cc_value <<= __builtin_preserve_field_info((object)->field, 4);                          \
	cc_value >>= __builtin_preserve_field_info((object)->field, 5);                          \
	_Pragma("clang diagnostic pop")                                                          \
	cc_value;                                                                                \
})
#define bpf_core_read(to, size, from) bpf_probe_read_kernel(to, size, from)
#define bpf_core_field_exists(field) __builtin_preserve_field_info(field, 2)
#define bpf_core_field_size(field) __builtin_preserve_field_info(field, 1)
#define bpf_core_type_exists(type) __builtin_preserve_type_info(*(__typeof__(type) *)0, 0)
#define bpf_core_type_size(type) __builtin_preserve_type_info(*(__typeof__(type) *)0, 1)

#else

#define BPF_CORE_READ_BITFIELD(object, field) ((u64)(object)->field)
#define bpf_core_read(to, size, from) bpf_probe_read_kernel(to, size, from)
#define bpf_core_field_exists(field) ((void)sizeof(field), 1)
#define bpf_core_field_size(field) sizeof(field)
#define bpf_core_type_exists(type) ((void)sizeof(type), 1)
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_enum_value(type, value) ((void)sizeof(type), (value))
#define bpf_core_enum_value_exists(type, value) ((void)sizeof(type), (void)(value), 1)

#endif

#define BPF_CORE_READ_BITFIELD_PROBED(object, field) BPF_CORE_READ_BITFIELD(object, field)

#endif
