// MPI_Allreduce of every predefined op on every type it is defined for, and of 16-bit floats: counts around the number
// of ranks and beyond 64 KiB, in place and not, blocking, nonblocking and persistent. All of these must give the same
// bits, on all ranks.
//
//   matrix [--seed N] [--brief] [--equal] [--types MPI_INT,...] [--ops MPI_SUM,...] [--counts 5,17,...]
//          [--memory device,host,...]
//   --brief: one handle per kind of element and fewer counts, for many ranks on few cores.
//   --equal: also pass the same buffer twice, which Open MPI hands on only with `--mca mpi_param_check 0`.
//   --memory: each operand lies in memory of one of these kinds (host, pinned, managed, device, and device1: of the
//   second GPU, not the current one), drawn for each rank and call.
#include "device.h"
#include "tests.h"
#include "types.h"

namespace {

using check::expect;
using oracle::NamedOp;
using oracle::NamedType;

enum class Call { blocking, nonblocking, persistent };
enum class Buffers { apart, in_place, equal };
const char* const kCalls[] = {"MPI_Allreduce", "MPI_Iallreduce", "MPI_Allreduce_init"};
const char* const kBuffers[] = {"apart", "in place", "equal"};

// An operand with guard bytes around it.
class Operand {
 public:
  Operand(device::Kind kind, int gpu, size_t bytes, size_t offset)
      : kind_(kind), at_(kGuard + offset), bytes_(bytes), image_(at_ + bytes + kGuard, 0xA5) {
    if (gpu != 0) device::driver.use(gpu);
    memory_ = (unsigned char*)device::driver.allocate(kind, image_.size());
    if (gpu != 0) device::driver.use(0);
  }
  ~Operand() { device::driver.free_memory(kind_, memory_); }
  Operand(const Operand&) = delete;

  void* address() const { return memory_ + at_; }
  void put(const std::vector<unsigned char>& bytes) {
    std::copy(bytes.begin(), bytes.end(), image_.begin() + (ptrdiff_t)at_);
    device::driver.put(kind_, memory_, image_.data(), image_.size());
  }
  // What it holds now; intact: whether the guards are as they were.
  std::vector<unsigned char> get(bool& intact) {
    device::driver.fetch(kind_, image_.data(), memory_, image_.size());
    const auto guards = [](unsigned char c) { return c == 0xA5; };
    const auto begin = image_.begin() + (ptrdiff_t)at_, end = begin + (ptrdiff_t)bytes_;
    intact = std::all_of(image_.begin(), begin, guards) && std::all_of(end, image_.end(), guards);
    return {begin, end};
  }

 private:
  static constexpr size_t kGuard = 128;
  const device::Kind kind_;
  const size_t at_, bytes_;
  std::vector<unsigned char> image_;
  unsigned char* memory_;
};

struct Place {
  device::Kind kind;
  int gpu;
};

// The kinds of memory that --memory names.
std::vector<Place> places() {
  const std::string memory = check::text("--memory");
  std::vector<Place> all;
  for (int k = 0; k < device::kKinds; ++k)
    if (("," + memory + ",").find("," + std::string(device::name(device::Kind(k))) + ",") != std::string::npos)
      all.push_back({device::Kind(k), 0});
  if (memory.find("device1") != std::string::npos) all.push_back({device::Kind::device, 1});
  if (all.empty()) all.push_back({device::Kind::host, 0});
  return all;
}

bool listed(const std::string& list, const std::string& name) {
  return list.empty() || ("," + list + ",").find("," + name + ",") != std::string::npos;
}

int reduce(Call call, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (call == Call::blocking) return MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
  if (call == Call::nonblocking) {
    MPI_Iallreduce(in, out, count, type, op, MPI_COMM_WORLD, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  check::allreduce_init(in, out, count, type, op, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return MPI_Request_free(&request);
}

// One op, type and count in all ways. Appends a hash of the result that all ranks must agree on.
void run(const NamedType& type, const NamedOp& op, size_t count, const std::vector<Place>& places,
         std::vector<uint64_t>& hashes) {
  const auto& e = type.elements;
  const size_t bytes = count * e.bytes;
  std::vector<std::vector<unsigned char>> inputs(check::size);
  for (int r = 0; r < check::size; ++r) {
    check::Random random(
        check::mix(check::seed, check::hash(type.name, strlen(type.name)) + count, 100 * r + int(op.op)));
    inputs[r].resize(bytes);
    e.fill(random, inputs[r].data(), count, op.op, check::size);
  }
  const std::vector<unsigned char>& mine = inputs[check::rank];
  check::Random random(check::mix(check::seed, count, check::rank));
  int alignment = 16;
  while ((size_t)alignment > 1 && e.bytes % alignment) alignment /= 2;

  std::vector<unsigned char> first;  // the result of the first way, which is checked; the others are compared with it
  for (Buffers buffers : {Buffers::apart, Buffers::in_place, Buffers::equal}) {
    if (buffers == Buffers::equal && !check::flag("--equal")) continue;
    for (Call call : {Call::blocking, Call::nonblocking, Call::persistent}) {
      const Place in_place = places[random.below(places.size())], out_place = places[random.below(places.size())];
      Operand in(in_place.kind, in_place.gpu, bytes, alignment * random.below(4));
      Operand out(out_place.kind, out_place.gpu, bytes, alignment * random.below(4));
      in.put(mine);
      out.put(buffers == Buffers::apart ? std::vector<unsigned char>(bytes, 0x3C) : mine);
      const void* from = buffers == Buffers::apart   ? in.address()
                         : buffers == Buffers::equal ? out.address()
                                                     : MPI_IN_PLACE;

      reduce(call, from, out.address(), (int)count, type.handle, oracle::op_for(type, op));

      bool in_intact, out_intact;
      const std::vector<unsigned char> input = in.get(in_intact), output = out.get(out_intact);

      char name[200];
      snprintf(name, sizeof name, "%s of %s %s, count %zu, buffers %s, %s to %s", kCalls[(int)call], op.name, type.name,
               count, kBuffers[(int)buffers], device::name(in_place.kind), device::name(out_place.kind));
      expect(in_intact && out_intact, "%s: wrote outside of the buffer", name);
      expect(input == mine, "%s: changed the send buffer", name);
      if (first.empty() && bytes) {
        first = output;
        const size_t at = e.wrong(op.op, inputs, count, output.data());
        std::string operands;
        for (int r = 0; at < count && r < check::size && r < 8; ++r) operands += " " + e.show(inputs[r].data(), at);
        expect(at == count, "%s: element %zu is %s, made from%s", name, at,
               at < count ? e.show(output.data(), at).c_str() : "", operands.c_str());
      }
      const size_t at = bytes ? e.differs(first.data(), output.data(), count) : count;
      expect(at == count, "%s: element %zu is %s, but %s when first called", name, at,
             at < count ? e.show(output.data(), at).c_str() : "", at < count ? e.show(first.data(), at).c_str() : "");
    }
  }
  // The hash must not see padding and the payload of NaN, so it is taken from the printed elements where bits may vary.
  uint64_t h = 1;
  const bool exact =
      type.group != oracle::Group::real && type.group != oracle::Group::complex && type.group != oracle::Group::pair;
  if (exact) h = check::hash(first.data(), first.size());
  for (size_t i = 0; !exact && i < count; ++i) {
    const std::string shown = e.show(first.data(), i);
    h = check::hash(shown.data(), shown.size()) + h * 31;
  }
  hashes.push_back(h);
}

// Rank 0 compares what the ranks found; point to point, since collectives are under test.
void compare(const std::vector<uint64_t>& hashes, const std::vector<std::string>& names) {
  const int n = (int)hashes.size();
  if (check::rank != 0) {
    MPI_Send(hashes.data(), n, MPI_UINT64_T, 0, 1, MPI_COMM_WORLD);
    return;
  }
  for (int r = 1; r < check::size; ++r) {
    std::vector<uint64_t> theirs(n);
    MPI_Recv(theirs.data(), n, MPI_UINT64_T, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; ++i)
      expect(hashes[i] == theirs[i], "%s: rank %d has other bits than rank 0", names[i].c_str(), r);
  }
}

}  // namespace

int tests::matrix() {
  const std::vector<Place> kinds = places();
  const bool on_gpus = kinds.size() > 1 || kinds[0].kind != device::Kind::host;
  if (on_gpus)
    device::start();
  else
    check::start();
  const bool brief = check::flag("--brief");
  const std::string types =
      check::text("--types", brief ? "MPI_INT,MPI_UINT8_T,MPI_SHORT,MPI_UNSIGNED_LONG,MPI_FLOAT,"
                                     "MPI_DOUBLE,MPI_LONG_DOUBLE,MPI_C_DOUBLE_COMPLEX,MPI_C_BOOL,"
                                     "MPI_BYTE,MPI_DOUBLE_INT,MPI_SHORT_INT,MPI_2REAL,float16,bfloat16"
                                   : "");
  const std::string ops = check::text("--ops"), only = check::text("--counts");
  const size_t p = check::size;
  int left_out = 0;
  for (const NamedType& type : oracle::all_types()) {
    if (!listed(types, type.name)) continue;
    std::vector<size_t> counts = {0, 1, p - 1, p, p + 1, 17, 1000, 4099, 65536 / type.elements.bytes + 3};
    if (brief) counts = {0, 1, p - 1, p + 1, 1000, 65536 / type.elements.bytes + 3};
    if (!only.empty()) {
      counts.clear();
      for (const char* at = only.c_str(); at; at = strchr(at, ',') ? strchr(at, ',') + 1 : nullptr)
        counts.push_back(strtoul(at, nullptr, 10));
    }
    std::vector<uint64_t> hashes;
    std::vector<std::string> names;
    for (const NamedOp& op : oracle::all_ops()) {
      if (!oracle::defined(type.group, op.op) || !listed(ops, op.name)) continue;
      if (!oracle::offered(type, op)) {
        ++left_out;
        continue;
      }
      for (size_t count : counts) {
        run(type, op, count, kinds, hashes);
        names.push_back(std::string(op.name) + " " + type.name + ", count " + std::to_string(count));
      }
    }
    compare(hashes, names);
  }
  if (check::rank == 0 && left_out) printf("note: %d pairs of op and type are not offered by this MPI\n", left_out);
  return on_gpus ? device::finish() : check::finish();
}
