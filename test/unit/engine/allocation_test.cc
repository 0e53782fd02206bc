// Once warm, small operations allocate nothing: counted at operator new, and at the engine's own memory.
#include <atomic>
#include <cstdlib>
#include <new>

#include "test/unit/engine/rig.h"

namespace {

std::atomic<size_t> allocations{0};  // other tests have threads

[[gnu::noinline]] void* allocate(size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

}  // namespace

// All forms, so that a sanitizer's own do not meet ours.
void* operator new(size_t bytes) {
  void* memory = allocate(bytes);
  if (!memory) std::abort();  // the tests do without exceptions
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace gpurdma {
namespace {

TEST(Allocation, NoneOnTheSmallPathOnceWarm) {
  Rig rig(0, 2);
  rig.transport.sent.reserve(10000);
  rig.reductions().reserve(10000);
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    const Slice slot = p.scratch(16);
    p.send(1, in(0, 16));
    p.recv(slot, 1);
    p.reduce(out(0, 16), in(0, 16), slot);
  });
  const Ints values(16, 1);
  const auto round = [&](bool early) {
    const Header next{Number::call(CallClass::nonblocking, rig.number.index() + 1).bits(), rig.comm->handle, 1, 0,
                      Header::Kind::data};
    const Payload payload{values.data(), 64, nullptr};
    if (early) rig.transport.inbox->arrived(next, payload);
    rig.begin(plan);
    if (!early) rig.transport.inbox->arrived(next, payload);
    return rig.ended();
  };
  rig.begin(plan);  // number 0, so that the next is index() + 1
  rig.data(1, 0, values);
  ASSERT_EQ(rig.ended(), Status::ok);
  ASSERT_EQ(round(true), Status::ok);
  ASSERT_EQ(round(false), Status::ok);
  const size_t before = allocations;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(round(i % 2), Status::ok);
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace gpurdma
