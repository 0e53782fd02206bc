#include "contrib/tuning/ranks.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "reduce/types.h"

namespace gpurdma::tuning {
namespace {

[[noreturn]] void end_job(const std::string& why) {
  std::fprintf(stderr, "gpurdma_tune: %s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// What two processes tell each other when they first meet.
struct Exchange {
  MPI_Request send, receive;
};

void* exchange(void*, int rank, const void* mine, size_t bytes, void* theirs, size_t capacity) {
  auto* e = new Exchange;
  MPI_Irecv(theirs, int(capacity), MPI_BYTE, rank, 0, MPI_COMM_WORLD, &e->receive);
  MPI_Isend(mine, int(bytes), MPI_BYTE, rank, 0, MPI_COMM_WORLD, &e->send);
  return e;
}

int exchange_test(void* opaque, size_t* received) {
  auto* e = static_cast<Exchange*>(opaque);
  int sent = 0, came = 0, count = 0;
  MPI_Status status;
  if (MPI_Request_get_status(e->receive, &came, &status) != MPI_SUCCESS) return -1;
  if (MPI_Request_get_status(e->send, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
  if (!sent || !came) return 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *received = size_t(count);
  return 1;
}

void exchange_end(void* opaque) {
  auto* e = static_cast<Exchange*>(opaque);
  MPI_Request_free(&e->send);
  MPI_Request_free(&e->receive);
  delete e;
}

void progress_mpi() {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);  // nobody sends this
}

// A value that differs by place and rank, and whose sums floats hold exactly.
constexpr int kValues = 5;
float value(size_t i, int rank) { return float((i + size_t(rank)) % kValues + 1); }

}  // namespace

Ranks::Ranks(size_t most_bytes, const NodeSpec& pretended) : in_(most_bytes / sizeof(float)), out_(in_.size()) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  find_nodes(pretended);
  for (size_t i = 0; i < in_.size(); ++i) in_[i] = value(i, rank_);
  const gpurdma_host_t host{[](int, const char* line) { std::fprintf(stderr, "gpurdma: %s\n", line); }, progress_mpi,
                            [](int) {}, [](void*, int) {}};
  gpurdma_settings_t settings;
  gpurdma_settings_default(&settings);
  if (gpurdma_runtime_create(&settings, &host, &runtime_) != GPURDMA_OK) end_job("gpurdma cannot start");
  gpurdma_comm_info_t info{};
  info.rank = rank_;
  info.size = size_;
  info.name = "tuning";
  std::vector<uint64_t> keys;
  for (const uint32_t node : node_of_) keys.push_back(uint64_t(node) << 32);
  info.keys = keys.data();
  info.oversubscribed = oversubscribed_;
  info.exchange = exchange;
  info.exchange_test = exchange_test;
  info.exchange_end = exchange_end;
  if (gpurdma_comm_create(runtime_, &info, &comm_) != GPURDMA_OK) end_job("gpurdma cannot start");
}

Ranks::~Ranks() {
  gpurdma_comm_destroy(comm_);
  gpurdma_runtime_destroy(runtime_);
}

void Ranks::find_nodes(const NodeSpec& pretended) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  int here = 1, crowded = 0;
  uint32_t leader = uint32_t(rank_);
  MPI_Comm_size(node, &here);
  MPI_Bcast(&leader, 1, MPI_UINT32_T, 0, node);
  MPI_Comm_free(&node);
  node_of_.resize(size_t(size_));
  MPI_Allgather(&leader, 1, MPI_UINT32_T, node_of_.data(), 1, MPI_UINT32_T, MPI_COMM_WORLD);
  if (!pretended.empty()) node_of_ = pretended.nodes(size_);
  auto layout = std::make_shared<const Layout>(Span<const uint32_t>(node_of_.data(), node_of_.size()));
  job_.ranks = size_;
  if (layout->nodes() > 1) job_.layout = std::move(layout);
  const int mine = here > int(sysconf(_SC_NPROCESSORS_ONLN));
  MPI_Allreduce(&mine, &crowded, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  oversubscribed_ = crowded != 0;
}

void Ranks::force(const Candidate& candidate) {
  if (candidate == forced_) return;
  forced_ = candidate;
  if (gpurdma_comm_force(comm_, candidate.algorithm->name, candidate.piece, candidate.depth, candidate.radix))
    end_job(to_text(candidate) + " was refused");
}

void Ranks::call(size_t bytes) {
  const int status =
      gpurdma_allreduce(comm_, in_.data(), out_.data(), bytes / sizeof(float), int(Op::sum), int(Type::float32));
  if (status != GPURDMA_OK)
    end_job(to_text(forced_) + " failed on rank " + std::to_string(rank_) + ": " + gpurdma_status_text(status));
}

// Meanwhile the others may wait for what gpurdma has still to send.
double Ranks::slowest(double mine) {
  double most = 0;
  MPI_Request request;
  MPI_Iallreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
    gpurdma_progress(runtime_);
    if (oversubscribed_) sched_yield();
  }
  return most;
}

void Ranks::check(const Candidate& candidate, size_t bytes) {
  force(candidate);
  call(bytes);
  float expected[kValues] = {};
  for (int i = 0; i < kValues; ++i)
    for (int rank = 0; rank < size_; ++rank) expected[i] += value(size_t(i), rank);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    if (out_[i] != expected[i % kValues]) end_job(to_text(candidate) + " gave a wrong sum");
}

double Ranks::block_us(const Candidate& candidate, size_t bytes, int calls) {
  force(candidate);
  slowest(0);  // begin together
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(bytes);
  return slowest((MPI_Wtime() - start) * 1e6 / calls);
}

}  // namespace gpurdma::tuning
