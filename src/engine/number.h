// The number of an operation: what, beside the communicator, tells one collective call from another on every rank.
//
// Blocking and nonblocking calls count separately: a nonblocking call can be made from inside progress (communicator
// creation does that), so its place among the blocking ones differs from rank to rank. A persistent operation gets its
// number when it is initialised and counts its own starts: ranks may start theirs in different orders.
// The numbers of calls begin again after 2^30, which nobody has in flight at a time.
#pragma once
#include <cstdint>

namespace gpurdma {

enum class CallClass : uint64_t { blocking = 0, nonblocking = 1, persistent = 2 };
constexpr const char* name_of(CallClass c) {
  return c == CallClass::blocking ? "blocking" : c == CallClass::nonblocking ? "nonblocking" : "persistent";
}

class Number {
 public:
  constexpr Number() = default;
  constexpr explicit Number(uint64_t bits) : bits_(bits) {}
  static constexpr uint64_t kWrap = uint64_t(1) << 30;
  static constexpr Number call(CallClass c, uint64_t index) { return Number(uint64_t(c) << 62 | index % kWrap); }
  // id: of the persistent operation on its communicator, below 2^30; start: how often it was started before.
  static constexpr Number start(uint32_t id, uint32_t start) {
    return Number(uint64_t(CallClass::persistent) << 62 | uint64_t(id) << 32 | start);
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr CallClass call_class() const { return CallClass(bits_ >> 62); }
  constexpr uint64_t index() const { return bits_ % kWrap; }  // blocking, nonblocking
  constexpr uint32_t persistent_id() const { return uint32_t(bits_ >> 32) & ((1u << 30) - 1); }
  constexpr uint32_t persistent_start() const { return uint32_t(bits_); }
  constexpr unsigned long long of_its_class() const {  // for people
    return call_class() == CallClass::persistent ? persistent_id() : index();
  }

 private:
  uint64_t bits_ = 0;
};

}  // namespace gpurdma
