#include "reduce/host.h"

#include "reduce/tables.h"

namespace gpurdma {
namespace {

Reduce find(const ReduceTable& table, Op op, Type type) {
  return table.at[static_cast<int>(op)][static_cast<int>(type)];
}

Reduce baseline(Op op, Type type) { return find(reduce_baseline, op, type); }

#ifdef __x86_64__
Reduce avx2(Op op, Type type) { return find(reduce_avx2, op, type); }

Reduce avx512(Op op, Type type) {
  const Reduce reduce = find(reduce_avx512, op, type);
  return reduce ? reduce : avx2(op, type);
}
#endif

// What this CPU runs. Also asks the operating system: a CPU bit alone does not say that it saves the wide registers.
struct Supported {
  InstructionSet sets[3];
  size_t count = 0;

  Supported() {
    sets[count++] = {"baseline", baseline};
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return;
    sets[count++] = {"avx2", avx2};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      sets[count++] = {"avx512", avx512};
#endif
  }
};

// Filled by its first user, which may be another file's static object: those have no order among files.
const Supported& supported() {
  static const Supported instance;
  return instance;
}

}  // namespace

Reduce host_reduce(Op op, Type type) {
  const Supported& all = supported();
  return all.sets[all.count - 1].reduce(op, type);
}

size_t instruction_sets(const InstructionSet** sets) {
  *sets = supported().sets;
  return supported().count;
}

}  // namespace gpurdma
