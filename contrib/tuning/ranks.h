// The ranks of an MPI job, with gpurdma among them: measures candidates. Needs no component in Open MPI: the product is
// linked in, and MPI carries what its processes tell each other at first, as in the component.
#pragma once
#include <string>
#include <vector>

#include "coll/node_spec.h"
#include "contrib/tuning/race.h"
#include "gpurdma.h"

namespace gpurdma::tuning {

class Ranks : public Stopwatch {
 public:
  // After MPI_Init. most_bytes: of the largest vector. pretended: nodes, for tests; empty: the real ones. Ends the job
  // when gpurdma cannot start.
  Ranks(size_t most_bytes, const NodeSpec& pretended);
  ~Ranks() override;  // before MPI_Finalize
  Ranks(const Ranks&) = delete;

  void check(const Candidate& candidate, size_t bytes) override;
  double block_us(const Candidate& candidate, size_t bytes, int calls) override;

  int rank() const { return rank_; }
  const Job& job() const { return job_; }
  bool oversubscribed() const { return oversubscribed_; }  // on some node

 private:
  void find_nodes(const NodeSpec& pretended);
  void force(const Candidate& candidate);
  void call(size_t bytes);
  double slowest(double mine);

  int rank_ = 0, size_ = 1;
  bool oversubscribed_ = false;
  std::vector<uint32_t> node_of_;  // by rank
  Job job_{1};
  Candidate forced_{nullptr, 0, 0, 0};
  gpurdma_runtime_t* runtime_ = nullptr;
  gpurdma_comm_t* comm_ = nullptr;
  std::vector<float> in_, out_;
};

}  // namespace gpurdma::tuning
