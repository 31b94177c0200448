// What instrumented code calls in place of a sanitizer's runtime: kernels are compiled with
// -fsanitize=thread and linked with these. Names and arguments are those of g++ 12 and clang 14.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simt/thread.h"

namespace {

using kvcheck::kernels::simt::Access;
using kvcheck::kernels::simt::note_access;

std::uintptr_t number_of(void* code) { return reinterpret_cast<std::uintptr_t>(code); }

void note(void* address, std::size_t bytes, bool write, bool unaligned, void* code) {
  if (kvcheck::kernels::simt::running.thread == nullptr) return;
  Access access;
  access.address = address;
  access.bytes = bytes;
  access.write = write;
  access.unaligned = unaligned;
  access.code = number_of(code);
  note_access(access);
}

void note_atomic(const volatile void* address, std::size_t bytes, bool write, void* code) {
  if (kvcheck::kernels::simt::running.thread == nullptr) return;
  Access access;
  access.address = const_cast<const void*>(address);
  access.bytes = bytes;
  access.write = write;
  access.atomic = true;
  access.code = number_of(code);
  note_access(access);
}

}  // namespace

#define KV_HOOK extern "C" __attribute__((visibility("default"), used))

KV_HOOK void __tsan_init() {}
KV_HOOK void __tsan_func_entry(void*) {}
KV_HOOK void __tsan_func_exit() {}

#define KV_ACCESS(bytes)                                             \
  KV_HOOK void __tsan_read##bytes(void* address) {                   \
    note(address, bytes, false, false, __builtin_return_address(0)); \
  }                                                                  \
  KV_HOOK void __tsan_write##bytes(void* address) {                  \
    note(address, bytes, true, false, __builtin_return_address(0));  \
  }                                                                  \
  KV_HOOK void __tsan_volatile_read##bytes(void* address) {          \
    note(address, bytes, false, false, __builtin_return_address(0)); \
  }                                                                  \
  KV_HOOK void __tsan_volatile_write##bytes(void* address) {         \
    note(address, bytes, true, false, __builtin_return_address(0));  \
  }                                                                  \
  KV_HOOK void __tsan_read_write##bytes(void* address) {             \
    note(address, bytes, false, false, __builtin_return_address(0)); \
    note(address, bytes, true, false, __builtin_return_address(0));  \
  }
KV_ACCESS(1)
KV_ACCESS(2)
KV_ACCESS(4)
KV_ACCESS(8)
KV_ACCESS(16)

#define KV_UNALIGNED(bytes)                                         \
  KV_HOOK void __tsan_unaligned_read##bytes(void* address) {        \
    note(address, bytes, false, true, __builtin_return_address(0)); \
  }                                                                 \
  KV_HOOK void __tsan_unaligned_write##bytes(void* address) {       \
    note(address, bytes, true, true, __builtin_return_address(0));  \
  }                                                                 \
  KV_HOOK void __tsan_unaligned_read_write##bytes(void* address) {  \
    note(address, bytes, false, true, __builtin_return_address(0)); \
    note(address, bytes, true, true, __builtin_return_address(0));  \
  }
KV_UNALIGNED(2)
KV_UNALIGNED(4)
KV_UNALIGNED(8)
KV_UNALIGNED(16)

KV_HOOK void __tsan_read_range(void* address, std::size_t bytes) {
  note(address, bytes, false, true, __builtin_return_address(0));
}
KV_HOOK void __tsan_write_range(void* address, std::size_t bytes) {
  note(address, bytes, true, true, __builtin_return_address(0));
}
KV_HOOK void __tsan_vptr_read(void** address) {
  note(address, sizeof(void*), false, false, __builtin_return_address(0));
}
KV_HOOK void __tsan_vptr_update(void** address, void*) {
  note(address, sizeof(void*), true, false, __builtin_return_address(0));
}

// Newer clang asks for these in place of the C library's.
KV_HOOK void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  note(const_cast<void*>(from), bytes, false, true, __builtin_return_address(0));
  note(to, bytes, true, true, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
KV_HOOK void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  note(const_cast<void*>(from), bytes, false, true, __builtin_return_address(0));
  note(to, bytes, true, true, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
KV_HOOK void* __tsan_memset(void* to, int value, std::size_t bytes) {
  note(to, bytes, true, true, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

#define KV_FETCH(bits, type, name)                                                      \
  KV_HOOK type __tsan_atomic##bits##_fetch_##name(volatile type* at, type value, int) { \
    note_atomic(at, sizeof(type), true, __builtin_return_address(0));                   \
    return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);                          \
  }
#define KV_ATOMIC(bits, type)                                                                  \
  KV_HOOK type __tsan_atomic##bits##_load(const volatile type* at, int) {                      \
    note_atomic(at, sizeof(type), false, __builtin_return_address(0));                         \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
  }                                                                                            \
  KV_HOOK void __tsan_atomic##bits##_store(volatile type* at, type value, int) {               \
    note_atomic(at, sizeof(type), true, __builtin_return_address(0));                          \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                            \
  KV_HOOK type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) {            \
    note_atomic(at, sizeof(type), true, __builtin_return_address(0));                          \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
  }                                                                                            \
  KV_HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile type* at, type* expected, \
                                                            type desired, int, int) {          \
    note_atomic(at, sizeof(type), true, __builtin_return_address(0));                          \
    return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST,         \
                                       __ATOMIC_SEQ_CST);                                      \
  }                                                                                            \
  KV_HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile type* at, type* expected,   \
                                                          type desired, int, int) {            \
    note_atomic(at, sizeof(type), true, __builtin_return_address(0));                          \
    return __atomic_compare_exchange_n(at, expected, desired, true, __ATOMIC_SEQ_CST,          \
                                       __ATOMIC_SEQ_CST);                                      \
  }                                                                                            \
  KV_FETCH(bits, type, add)                                                                    \
  KV_FETCH(bits, type, sub)                                                                    \
  KV_FETCH(bits, type, and)                                                                    \
  KV_FETCH(bits, type, or)                                                                     \
  KV_FETCH(bits, type, xor)
KV_ATOMIC(8, unsigned char)
KV_ATOMIC(32, unsigned)
KV_ATOMIC(64, unsigned long)

KV_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
KV_HOOK void __tsan_atomic_signal_fence(int) {}
