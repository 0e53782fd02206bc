// N ranks in one process: each has its own engine, the product's, and runs the product's plans over the modelled
// network.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coll/layout.h"
#include "engine/engine.h"
#include "test/sim/buffer.h"
#include "test/sim/case.h"

namespace gpurdma::sim {

class World {
 public:
  // network_seed decides on delays and orders, but must not matter to any result.
  World(const Case& what, uint64_t network_seed);
  ~World();

  // Runs to the end. Empty when all was right, otherwise what was wrong.
  std::string run();
  uint64_t result_hash() const;

 private:
  using Where = Network::Where;

  struct Turn {  // one rank's part in one operation
    size_t operation;
    int rank, place;  // in the world, in the communicator
    size_t count;
    std::unique_ptr<Plan> plan;
    Buffer input, output;
    void *input_at, *output_at;  // as the engine knows them
    Run* run;                    // while it has not ended
    bool begun, ended;
    Status status;
  };
  // Turns of one rank that start in this order; each may have to wait for the end of the one before.
  struct Line {
    std::vector<Turn*> turns;
    size_t next = 0;
    bool one_at_a_time;
    bool last;
  };
  struct Rank {
    Counters counters;
    std::unique_ptr<FakeGpus> gpus;
    std::unique_ptr<Engine> engine;
    std::vector<Communicator*> comms;  // by index; nullptr: not a member, or freed
    std::vector<uint32_t> persistent;  // by index: how many were made
    std::vector<Line> lines;
    size_t open = 0;  // turns that have not ended
    size_t begun = 0, released = 0;
  };
  struct Member {  // the host's side of a communicator
    World* world;
    int comm, place;
  };
  struct Exchange {  // one rank's side of a greeting
    World* world;
    int rank;  // in the world
    std::vector<char> mine;
    char* theirs;
    size_t received = 0;
    int result = 0;
    bool ended = false;
  };
  struct Result {  // of one operation
    bool known = false;
    std::vector<char> bits;
    size_t ok = 0, failed = 0;
  };

  static void* exchange(void* member, int place, const void* mine, size_t bytes, void* theirs, size_t capacity);
  static int exchange_test(void* exchange, size_t* received);
  static void exchange_end(void* exchange);

  void make_ranks();
  void make_communicators();
  void make_turns();
  size_t count_of(const Operation& operation, int rank) const;
  void start_later(int rank, uint64_t spread);
  bool start_one(Rank& rank);
  bool startable(const Rank& rank, const Line& line) const;
  void begin(Turn& turn);
  void make_buffers(Turn& turn);
  void* put_somewhere(Rank& rank, const Buffer& buffer);
  Binding bind(Turn& turn);
  void collect(int rank);
  void end(Turn& turn, Status status);
  void check_result(Turn& turn);
  void free_idle_communicators(int rank);
  void drive();
  void advance(int rank);
  bool spin_for_deadlines();
  bool all_ended() const;
  void check_at_end();
  void check_closed();
  void bury_the_dead();
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }
  std::string who_waits() const;
  Rank& rank(int rank) { return *ranks_[size_t(rank)]; }
  const Operation& operation_of(const Turn& turn) const { return case_.operations[turn.operation]; }
  uint64_t salt(size_t operation) const { return mix(case_.seed ^ operation); }
  bool concerned(const std::vector<int>& members) const;

  const Case& case_;
  Random random_;
  Network network_;
  Layouts interned_;
  std::vector<std::shared_ptr<const Layout>> layouts_;  // by communicator
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::vector<int>, Exchange*> half_done_;  // by communicator, who asked, whom
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Turn>> turns_;
  std::vector<Result> results_;
  bool victim_waits_;  // until the others have ended: before it starts anything, or frozen
  bool frozen_ = false;
  std::string failure_;
};

}  // namespace gpurdma::sim
