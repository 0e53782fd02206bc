// Placement: where a plan works on its operands, and the copies that this brings at either end of a run.
//
//   host      all operands are in host memory: nothing to do
//   mirror    the output lies on a GPU, and the plan works on host memory of ours, with host reductions
//   resident  the plan works on the GPU that the output lies on
// A plan that does not find its input where it works gets a copy of it in the output's place, and runs in place. All of
// this is one rank's own affair: the plans of all ranks have the same messages wherever each works.
#pragma once
#include "device/gpus.h"
#include "engine/memory.h"

namespace gpurdma {

// What one rank passes to a call. input == output: in place.
struct Operands {
  const void* input;
  void* output;
  size_t count;
  size_t element;  // bytes
  Op op;
  Type type;
  size_t bytes() const { return count * element; }
};

struct Placement {
  enum class Kind : uint8_t { host, mirror, resident };

  Kind kind = Kind::host;
  GpuId gpu = kHost;            // whose work the copies are, and, when resident, where the plan works
  GpuId other = kHost;          // another one that holds the input
  const void* input = nullptr;  // what the plan is bound to; nullptr: it runs in place
  void* output = nullptr;
  GpuCopy enter{}, leave{};  // before and after the plan; width 0: none
  void* mirror = nullptr;    // ours, of enter's or leave's width
  void* scratch = nullptr;   // resident: of the plan
  size_t scratch_bytes = 0;
  bool pinned_mirror = false;
};

// Decides on placements, and holds their memory. Not thread-safe.
class Placer {
 public:
  // What decides where bytes pass, alike or not on all ranks.
  struct Rules {
    bool mirror_always = false;       // whatever the size
    size_t mirror_up_to = 256 << 10;  // bytes of an operand that are cheaper to mirror
  };

  // gpus: may be nullptr. pageable: where mirrors lie when pinned memory is short.
  Placer(Gpus* gpus, Memory& pageable, const Rules& rules) : gpus_(gpus), pageable_(pageable), rules_(rules) {}

  // Decides. At the entry of a call. Errors: no_memory, gpu.
  Status place(const Operands& operands, Placement* placement);
  // Decides again, against working on the GPU.
  Status mirror(const Operands& operands, Placement* placement);
  // Takes scratch for a resident plan. False: there is no room for so much now.
  bool take_scratch(Placement& placement, size_t bytes);
  // Gives back what the placement holds.
  void release(Placement& placement);

 private:
  Gpus* gpus_;
  Memory& pageable_;
  const Rules rules_;
};

}  // namespace gpurdma
