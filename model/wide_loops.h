// Loops over the lanes of a row, compiled once for each width of vectors that a processor may have.
#pragma once

/// Before a function: it is compiled for the widest vectors as well, and the processor chooses when
/// the program starts. The bits are the same: nothing is contracted or summed in another order.
/// What it calls must be inlined into it. Sanitizers see calls before they are ready for them, so
/// theirs is the plain function alone.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KVCHECK_WIDE_LOOPS \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KVCHECK_WIDE_LOOPS
#endif

/// Of what such a function calls.
#define KVCHECK_INTO_WIDE_LOOPS [[gnu::always_inline]] inline
