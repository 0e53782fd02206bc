// A case of the simulator: what runs on how many ranks, over which network, and what goes wrong. All of it follows from
// a seed and from what the command line pins down.
#pragma once
#include <string>
#include <vector>

#include "coll/catalogue.h"
#include "engine/number.h"
#include "test/sim/element.h"
#include "test/sim/fake_gpus.h"
#include "test/sim/network.h"

namespace gpurdma::sim {

enum class Fault {
  none,
  scratch,   // the victim has little memory for scratch: operations fail everywhere or nowhere, and the next ones work
  death,     // the victim dies
  absent,    // the victim starts only when the others have given up
  frozen,    // the victim stops for a while, and goes on when the others have given up
  mismatch,  // the victim passes another count
  errors,    // sends and fetches fail here and there
  unable,    // the victim has no transport
  gpu,       // work of the victim's GPUs fails here and there
};
constexpr int kFaults = 9;
const char* name_of(Fault fault);
bool has_deadline(Fault fault);  // operations end by their deadline

// What the command line pins down; the rest is drawn.
struct Pinned {
  const Algorithm* algorithm = nullptr;
  int ranks = 0;
  int fault = -1;
};

struct Operation {
  int comm;  // index
  CallClass call_class;
  uint32_t persistent;  // which of the communicator's persistent operations
  const Algorithm* algorithm;
  size_t count;
  Tuning tuning;
  bool in_place;
  const Element* element;
  bool last;  // started when all others have ended on that rank
};

struct Case {
  uint64_t seed;
  int ranks;
  Behaviour behaviour;
  unsigned busy;                        // percent of events after which a rank does not call progress at once
  bool greet;                           // ranks are linked by greetings, otherwise from the beginning
  bool free_early;                      // a rank frees a communicator as soon as its own operations on it have ended
  std::vector<std::vector<int>> comms;  // ranks of the world, in the order of the communicator
  std::vector<Operation> operations;
  Fault fault;
  int victim;
  unsigned on_gpus;  // percent of operands that lie on a GPU
  FakeGpus::Behaviour gpus;

  bool repeatable() const;  // whether all ranks, and all networks, must give the same bits
  std::string text() const;
};

Case draw_case(uint64_t seed, const Pinned& pinned);

}  // namespace gpurdma::sim
