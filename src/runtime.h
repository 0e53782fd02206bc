// The runtime: what one process has of gpurdma, behind the C boundary. Owned by the Open MPI component.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/counters.h"
#include "coll/layout.h"
#include "coll/plan_cache.h"
#include "coll/selection.h"
#include "device/gpus.h"
#include "engine/engine.h"
#include "gpurdma.h"
#include "staging.h"
#include "transport/router.h"

struct gpurdma_runtime {
  gpurdma_runtime(const gpurdma_settings_t& settings, const gpurdma_host_t& host);

  const gpurdma_host_t host;
  const gpurdma::Forced forced;
  const std::vector<gpurdma::TuningRow> tuning;
  gpurdma::Counters counters;
  gpurdma::Layouts layouts;
  gpurdma::PlanCache plans;
  const std::unique_ptr<gpurdma::Gpus> gpus;  // nullptr: none, or this build has no CUDA
  gpurdma::Router transport;
  gpurdma::Engine engine;
  gpurdma::Staging staging;
  int progress_level = 0;   // what host.set_progress was told last
  unsigned idle_polls = 0;  // since something was active, for lowering it again

  // What the host is to do from now on: see host.set_progress.
  void ask_for_progress(int level);
};

struct gpurdma_comm {
  gpurdma_runtime* runtime;
  gpurdma::Communicator* comm;
  std::shared_ptr<const gpurdma::Layout> layout;  // nullptr: all ranks are on one node
  int gpus = 0;  // ranks that could use one
  gpurdma::Forced forced;
  // The last call's choice: most programs repeat it.
  size_t last_count = SIZE_MAX, last_element = 0;
  gpurdma::Choice last_choice{};
};

struct gpurdma_persistent {
  gpurdma_comm* comm;
  const void* in;
  void* out;
  size_t count;
  gpurdma::Op op;
  gpurdma::Type type;
  uint32_t id;
  void* cookie;
};
