/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* BPF_PROG(name, parameters...): a hook of the table of operations. */
#ifndef OPENTCP_BPF_TRACING_H
#define OPENTCP_BPF_TRACING_H

#include "../vmlinux.h"
#include "bpf_helpers.h"

#define CC_COUNT_PICK(_1, _2, _3, _4, _5, _6, count, ...) count
#define CC_COUNT(...) CC_COUNT_PICK(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define CC_JOIN_(a, b) a##b
#define CC_JOIN(a, b) CC_JOIN_(a, b)

#if defined(__bpf__)

#define CC_CTX_1 (void *)ctx[0]
#define CC_CTX_2 CC_CTX_1, (void *)ctx[1]
#define CC_CTX_3 CC_CTX_2, (void *)ctx[2]
#define CC_CTX_4 CC_CTX_3, (void *)ctx[3]
#define CC_CTX_5 CC_CTX_4, (void *)ctx[4]
#define CC_CTX_6 CC_CTX_5, (void *)ctx[5]

/* A program gets its parameters as an array of words. */
#define BPF_PROG(name, parameters...)                                                                      \
	name(unsigned long long *ctx);                                                                     \
	static __attribute__((always_inline)) __typeof__(name(0))                                          \
	cc_body_##name(unsigned long long *ctx, ##parameters);                                             \
	__typeof__(name(0)) name(unsigned long long *ctx)                                                  \
	{                                                                                                  \
		_Pragma("clang diagnostic push")                                                           \
		_Pragma("clang diagnostic ignored \"-Wint-conversion\"")                                   \
		return cc_body_##name(ctx, CC_JOIN(CC_CTX_, CC_COUNT(parameters)));                        \
		_Pragma("clang diagnostic pop")                                                            \
	}                                                                                                  \
	static __attribute__((always_inline)) __typeof__(name(0))                                          \
	cc_body_##name(unsigned long long *ctx __attribute__((unused)), ##parameters)

#else

#define CC_TAKEN_1 unsigned long cc_1
#define CC_TAKEN_2 CC_TAKEN_1, unsigned long cc_2
#define CC_TAKEN_3 CC_TAKEN_2, unsigned long cc_3
#define CC_TAKEN_4 CC_TAKEN_3, unsigned long cc_4
#define CC_TAKEN_5 CC_TAKEN_4, unsigned long cc_5
#define CC_TAKEN_6 CC_TAKEN_5, unsigned long cc_6
#define CC_GIVEN_1 cc_1
#define CC_GIVEN_2 CC_GIVEN_1, cc_2
#define CC_GIVEN_3 CC_GIVEN_2, cc_3
#define CC_GIVEN_4 CC_GIVEN_3, cc_4
#define CC_GIVEN_5 CC_GIVEN_4, cc_5
#define CC_GIVEN_6 CC_GIVEN_5, cc_6

/*
 * Natively the host calls the function itself: words come in registers, each is narrowed to its parameter's type. The
 * entry in cc_hooks lets the loader see that a table's member takes what the host passes.
 */
#define BPF_PROG(name, parameters...)                                                                      \
	cc_answer_##name(void);                                                                            \
	static inline __attribute__((always_inline)) __typeof__(cc_answer_##name())                        \
	cc_body_##name(parameters);                                                                        \
	static __typeof__(cc_answer_##name()) name(CC_JOIN(CC_TAKEN_, CC_COUNT(parameters)))               \
	{                                                                                                  \
		cc_current = (struct sock *)cc_1;                                                          \
		_Pragma("GCC diagnostic push")                                                             \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                     \
		return cc_body_##name(CC_JOIN(CC_GIVEN_, CC_COUNT(parameters)));                           \
		_Pragma("GCC diagnostic pop")                                                              \
	}                                                                                                  \
	static const struct cc_foreign_hook cc_hook_##name __attribute__((section("cc_hooks"), used)) = {  \
		#name, #parameters, (const void *)name, __LINE__, CC_COUNT(parameters),                    \
		!__builtin_types_compatible_p(__typeof__(cc_answer_##name()), void),                       \
	};                                                                                                 \
	static inline __attribute__((always_inline)) __typeof__(cc_answer_##name())                        \
	cc_body_##name(parameters)

#endif

#endif
