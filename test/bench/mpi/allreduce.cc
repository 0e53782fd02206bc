// mpi_bench: MPI_Allreduce through gpurdma and through the component beneath it, in one run, block by block in turn.
//
// A communicator's component is chosen when it is made: one duplicate of MPI_COMM_WORLD gets gpurdma (run with
// `--mca coll gpurdma`), the other leaves it out by Open MPI's own info key. Blocks alternate, so that both see the
// same machine; the ratio is taken pair by pair.
//
//   mpi_bench [--min BYTES] [--max BYTES] [--factor N] [--type NAME] [--op NAME] [--blocks N] [--block-ms N] [--json
//   FILE] type: float (default), double, int, long, char. op: sum (default), max, min.
#include "test/bench/mpi/measure.h"
#include "test/mpi/check.h"

namespace {

struct NamedType {
  const char* name;
  MPI_Datatype type;
  size_t bytes;
  void (*put)(void* data, size_t index, int value);
  bool (*holds)(const void* data, size_t index, int value);
};

template <class T>
void put(void* data, size_t index, int value) {
  ((T*)data)[index] = T(value);
}
template <class T>
bool holds(const void* data, size_t index, int value) {
  return ((const T*)data)[index] == T(value);
}

NamedType type_named(const std::string& name) {
  const NamedType types[] = {{"float", MPI_FLOAT, 4, put<float>, holds<float>},
                             {"double", MPI_DOUBLE, 8, put<double>, holds<double>},
                             {"int", MPI_INT, 4, put<int>, holds<int>},
                             {"long", MPI_LONG, 8, put<long>, holds<long>},
                             {"char", MPI_SIGNED_CHAR, 1, put<signed char>, holds<signed char>}};
  for (const NamedType& type : types)
    if (name == type.name) return type;
  fprintf(stderr, "no type is named %s: float, double, int, long, char\n", name.c_str());
  exit(2);
}

struct NamedOp {
  const char* name;
  MPI_Op op;
  int (*apply)(int, int);
};

NamedOp op_named(const std::string& name) {
  const NamedOp ops[] = {{"sum", MPI_SUM, [](int a, int b) { return a + b; }},
                         {"max", MPI_MAX, [](int a, int b) { return std::max(a, b); }},
                         {"min", MPI_MIN, [](int a, int b) { return std::min(a, b); }}};
  for (const NamedOp& op : ops)
    if (name == op.name) return op;
  fprintf(stderr, "no op is named %s: sum, max, min\n", name.c_str());
  exit(2);
}

int value_of(int rank, size_t index) { return 1 + int((index + rank) % 3); }

struct Row {
  size_t bytes;
  double gpurdma_us, beneath_us, ratio, ratio_low, ratio_high;  // low, high: quartiles
  double busbw_gb_s, limit_us;
};

class Bench {
 public:
  Bench() : type_(type_named(check::text("--type", "float"))), op_(op_named(check::text("--op", "sum"))) {
    MPI_Comm_dup(MPI_COMM_WORLD, &gpurdma_);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", "^gpurdma");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &beneath_);
    MPI_Info_free(&info);
    latency_us_ = bench::latency_us();
    copy_gb_s_ = 1e-3 * (64 << 20) / bench::copy_us(64 << 20);
    int before = (int)check::size, after;
    check::Counters calls("_calls");
    MPI_Allreduce(&before, &after, 1, MPI_INT, MPI_SUM, gpurdma_);
    active_ = calls.sum() == 1;
    MPI_Allreduce(&before, &after, 1, MPI_INT, MPI_SUM, beneath_);
    active_ = active_ && calls.sum() == 1;
  }

  Row run(size_t bytes) {
    const size_t count = std::max<size_t>(1, bytes / type_.bytes);
    std::vector<char> in(count * type_.bytes), out(count * type_.bytes);
    for (size_t i = 0; i < count; ++i) type_.put(in.data(), i, value_of(check::rank, i));
    const bench::Case c = {type_.type, op_.op, (int)count, in.data(), out.data()};
    for (MPI_Comm comm : {gpurdma_, beneath_}) verify(c, comm);

    // Warm, and see how many calls fill a block.
    const double budget_us = 1e3 * (double)check::number("--block-ms", 4);
    double once_us = bench::block_us(c, beneath_, 3);
    const int calls = (int)std::max(1.0, std::min(20000.0, budget_us / std::max(once_us, 0.05)));
    bench::block_us(c, beneath_, calls);
    bench::block_us(c, gpurdma_, calls);

    std::vector<double> ours, theirs, ratios;
    double spent_us = 0;  // equal on all ranks, as block_us is
    for (int block = 0; block < (int)check::number("--blocks", 15); ++block) {
      if (block >= 5 && spent_us > 4e6) break;
      const bool ours_first = block % 2;
      if (ours_first) ours.push_back(bench::block_us(c, gpurdma_, calls));
      theirs.push_back(bench::block_us(c, beneath_, calls));
      if (!ours_first) ours.push_back(bench::block_us(c, gpurdma_, calls));
      ratios.push_back(ours.back() / theirs.back());
      spent_us += calls * (ours.back() + theirs.back());
    }
    const double us = bench::median(ours), share = 2.0 * (check::size - 1) / check::size;
    return {count * type_.bytes,
            us,
            bench::median(theirs),
            bench::median(ratios),
            bench::quantile(ratios, 0.25),
            bench::quantile(ratios, 0.75),
            1e-3 * count * type_.bytes / us * share,
            limit_us(count * type_.bytes)};
  }

  void print_head() const {
    printf("%d ranks, %s %s. One 8-byte message takes %.2f us one way; a core copies %.1f GB/s while all ranks copy.\n",
           check::size, type_.name, op_.name, latency_us_, copy_gb_s_);
    if (!active_) printf("gpurdma is NOT ACTIVE here: both columns are the component beneath.\n");
    printf(
        "limit: the messages' latency in log2(ranks) rounds and one copy of the bytes that each rank must send.\n\n");
    printf("%10s %12s %12s %7s %15s %10s %9s\n", "bytes", "gpurdma us", "beneath us", "ratio", "quartiles",
           "busbw GB/s", "of limit");
  }

  static void print(const Row& r) {
    printf("%10zu %12.2f %12.2f %7.2f %7.2f %7.2f %10.2f %8.0f%%\n", r.bytes, r.gpurdma_us, r.beneath_us, r.ratio,
           r.ratio_low, r.ratio_high, r.busbw_gb_s, 100 * r.limit_us / r.gpurdma_us);
    fflush(stdout);
  }

  bool write_json(const char* path, const std::vector<Row>& rows) const {
    FILE* f = fopen(path, "w");
    if (!f) return perror(path), false;
    fprintf(f, "{\"ranks\": %d, \"type\": \"%s\", \"op\": \"%s\", \"active\": %s,\n", check::size, type_.name, op_.name,
            active_ ? "true" : "false");
    fprintf(f, " \"latency_us\": %.4f, \"copy_gb_s\": %.4f,\n \"rows\": [", latency_us_, copy_gb_s_);
    for (const Row& r : rows) {
      fprintf(f, "%s\n  {\"bytes\": %zu, \"gpurdma_us\": %.4f, \"beneath_us\": %.4f, ", &r == &rows[0] ? "" : ",",
              r.bytes, r.gpurdma_us, r.beneath_us);
      fprintf(f,
              "\"ratio\": %.4f, \"ratio_low\": %.4f, \"ratio_high\": %.4f, \"busbw_gb_s\": %.4f, \"limit_us\": %.4f}",
              r.ratio, r.ratio_low, r.ratio_high, r.busbw_gb_s, r.limit_us);
    }
    fprintf(f, "\n]}\n");
    return fclose(f) == 0;
  }

  ~Bench() {
    MPI_Comm_free(&gpurdma_);
    MPI_Comm_free(&beneath_);
  }

 private:
  void verify(const bench::Case& c, MPI_Comm comm) {
    memset(c.out, 0x55, c.count * type_.bytes);
    MPI_Allreduce(c.in, c.out, c.count, c.type, c.op, comm);
    for (int i = 0; i < c.count; ++i) {
      int want = value_of(0, i);
      for (int r = 1; r < check::size; ++r) want = op_.apply(want, value_of(r, i));
      if (!check::expect(type_.holds(c.out, i, want), "%s, %d elements: element %d is wrong",
                         comm == gpurdma_ ? "gpurdma" : "beneath", c.count, i))
        return;
    }
  }

  // What no allreduce through memory is faster than.
  double limit_us(size_t bytes) const {
    int rounds = 0;
    while ((1 << rounds) < check::size) ++rounds;
    return rounds * latency_us_ + bench::copy_us(size_t(2.0 * (check::size - 1) / check::size * bytes));
  }

  NamedType type_;
  NamedOp op_;
  MPI_Comm gpurdma_, beneath_;
  bool active_;
  double latency_us_, copy_gb_s_;
};

}  // namespace

int main(int argc, char** argv) {
  check::program = "mpi_bench";
  check::arguments.assign(argv + 1, argv + argc);
  check::start();
  for (int i = 1; i < argc; i += 2) {
    const std::string known = " --min --max --factor --type --op --blocks --block-ms --json ";
    if (known.find(" " + std::string(argv[i]) + " ") != std::string::npos && i + 1 < argc) continue;
    if (check::rank == 0)
      fprintf(stderr, "mpi_bench: %s is not understood, or has no value; known are%s\n", argv[i], known.c_str());
    MPI_Finalize();
    return 2;
  }
  {
    Bench bench;
    if (check::rank == 0) bench.print_head();
    const size_t least = check::number("--min", 4), most = check::number("--max", 64 << 20);
    const size_t factor = std::max(2L, check::number("--factor", 4));
    std::vector<Row> rows;
    for (size_t bytes = least; bytes <= most; bytes *= factor) {
      rows.push_back(bench.run(bytes));
      if (check::rank == 0) Bench::print(rows.back());
    }
    const std::string json = check::text("--json");
    if (check::rank == 0 && !json.empty()) check::failures += !bench.write_json(json.c_str(), rows);
  }
  MPI_Finalize();
  return check::failures != 0;
}
