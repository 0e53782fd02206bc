// The C boundary, second part: the runtime, communicators and calls. Joins coll and engine.
#include "gpurdma.h"

#include <memory>
#include <mutex>
#include <vector>

#include "coll/node_spec.h"
#include "coll/tuning_file.h"
#include "guard.h"
#include "reduce/host.h"
#include "runtime.h"

using namespace gpurdma;

namespace {

Forced forced_by(const gpurdma_settings_t& settings) {
  return {find_algorithm(Collective::allreduce, settings.algorithm ? settings.algorithm : ""), settings.piece,
          settings.depth, settings.radix};
}

// 0: the real one.
uint32_t pretended_node(const gpurdma_settings_t& settings) {
  NodeSpec spec;
  return NodeSpec::parse(settings.test_nodes, &spec) && !spec.empty() ? 1 + spec.node_of(settings.job_rank) : 0;
}

GpuSettings gpu_settings(const gpurdma_settings_t& settings) {
  GpuSettings gpu;
  gpu.presence = GpuSettings::Presence(settings.gpu);
  gpu.pinned_bytes = settings.pinned_memory;
  gpu.device_bytes = settings.device_memory;
  gpu.waits_for_default_stream = settings.input_ready == GPURDMA_INPUT_READY_DEFAULT_STREAM;
  gpu.kernels = settings.gpu_kernels != 0;
  return gpu;
}

Placer::Rules placing(const gpurdma_settings_t& settings) {
  Placer::Rules rules;
  rules.mirror_always = settings.gpu_path == GPURDMA_GPU_PATH_MIRROR;
  rules.mirror_up_to = settings.gpu_path == GPURDMA_GPU_PATH_AUTO ? settings.gpu_mirror : 0;
  return rules;
}

Stager::Direct direct(const gpurdma_settings_t& settings) {
  switch (settings.gpu_path) {
    case GPURDMA_GPU_PATH_DIRECT:
      return Stager::Direct::always;
    case GPURDMA_GPU_PATH_STAGED:
      return Stager::Direct::never;
    default:
      return Stager::Direct::over_rdma;
  }
}

}  // namespace

gpurdma_runtime::gpurdma_runtime(const gpurdma_settings_t& settings, const gpurdma_host_t& host)
    : host(host),
      forced(forced_by(settings)),
      tuning(before_builtin(parse_tuning(settings.tuning ? settings.tuning : "").rows)),
      gpus(open_gpus(gpu_settings(settings))),
      transport(settings.shared_memory, settings.single_copy != 0, pretended_node(settings), settings.job_rank == 0),
      engine(
          transport, counters, {settings.deadline_s, settings.stall_warning_s, SIZE_MAX},
          {[](void* context) { static_cast<gpurdma_runtime*>(context)->host.progress(); },
           [](void* context, const Plan& plan) { static_cast<gpurdma_runtime*>(context)->plans.release(&plan); }, this},
          gpus.get(), placing(settings), direct(settings)),
      staging(gpus.get(), settings.pinned_memory / 2) {}

void gpurdma_runtime::ask_for_progress(int level) {
  if (level == 2) idle_polls = 0;
  if (progress_level == level) return;
  progress_level = level;
  host.set_progress(level);
}

namespace {

constexpr unsigned kIdlePolls = 10000;  // after which progress is asked for now and then only

// For calls from inside which completions must not be told; everywhere else Hold.
using QuietHold = std::lock_guard<Engine>;

// Holds the engine's lock; when released, owners of operations and copies that ended are told.
class Hold {
 public:
  explicit Hold(gpurdma_runtime& runtime) : runtime_(runtime) { runtime.engine.lock(); }
  Hold(gpurdma_runtime& runtime, std::adopt_lock_t) : runtime_(runtime) {}
  Hold(const Hold&) = delete;
  ~Hold() {
    constexpr int kBatch = 16;
    while (runtime_.engine.unclaimed() != 0) {
      Engine::Ended ended[kBatch];
      const int n = runtime_.engine.finished(ended, kBatch);
      runtime_.engine.unlock();
      for (int i = 0; i < n; ++i)
        runtime_.host.completed(ended[i].cookie, ended[i].host_error ? -ended[i].host_error : int(ended[i].status));
      runtime_.engine.lock();
    }
    for (Staging::Ended ended; runtime_.staging.take_ended(&ended);) {
      runtime_.engine.unlock();
      ended.done(ended.cookie, int(ended.status));
      runtime_.engine.lock();
    }
    runtime_.engine.unlock();
  }

 private:
  gpurdma_runtime& runtime_;
};

const Plan* acquire(gpurdma_comm& c, size_t count, bool in_place) {
  const Choice& choice = c.last_choice;
  const Layout* layout = choice.algorithm->uses.layout ? c.layout.get() : nullptr;
  return c.runtime->plans.acquire(
      {choice.algorithm, c.comm->rank, c.comm->size, {count, in_place, 0}, choice.tuning, layout});
}

// Decides where the operands are worked on, and binds the plan for that to it. What fails here fails the run, in which
// this rank still owes its messages.
const Plan* plan_for(gpurdma_comm& c, const Operands& o, Binding* binding) {
  Placer& placer = c.runtime->engine.placer();
  Placement& placement = binding->placement;
  binding->failed = placer.place(o, &placement);
  const Plan* plan = acquire(c, o.count, !placement.input);
  if (placement.kind == Placement::Kind::resident &&
      !placer.take_scratch(placement, plan->scratch_elements() * o.element)) {
    c.runtime->plans.release(plan);
    binding->failed = placer.mirror(o, &placement);
    plan = acquire(c, o.count, !placement.input);
  }
  binding->input = placement.input;
  binding->output = placement.output;
  binding->op = o.op;
  binding->type = o.type;
  binding->window = uint32_t(c.last_choice.tuning.depth);
  return plan;
}

// Starts an allreduce. Under the lock.
Status begin(gpurdma_comm& c, Number number, const Operands& o, Reduce reduce, void* cookie, Run** run) {
  gpurdma_runtime& runtime = *c.runtime;
  const size_t element = o.element, bytes = o.bytes();
  if (c.last_count != o.count || c.last_element != element) {
    const int nodes = c.layout ? c.layout->nodes() : 1;
    const Span<const TuningRow> table(runtime.tuning.data(), runtime.tuning.size());
    c.last_choice = select(table, {Collective::allreduce, c.comm->size, nodes, bytes, element, c.gpus}, c.forced);
    c.last_count = o.count;
    c.last_element = element;
    GPURDMA_LOG(debug,
                "communicator %s on %d nodes: allreduce of %zu bytes by %s, pieces of %zu elements, depth %d, radix %d",
                c.comm->name.c_str(), nodes, bytes, c.last_choice.algorithm->name, c.last_choice.tuning.piece,
                c.last_choice.tuning.depth, c.last_choice.tuning.radix);
  }
  const Choice& choice = c.last_choice;
  Binding binding{nullptr, nullptr, element, reduce};
  const Plan* plan;
  try {
    plan = plan_for(c, o, &binding);
  } catch (const std::bad_alloc&) {
    runtime.engine.placer().release(binding.placement);
    runtime.engine.close(*c.comm, Status::no_memory);  // peers count on us: tell them
    throw;
  }
  const auto row = uint32_t(choice.algorithm - catalogue().data());
  return runtime.engine.begin(*plan, *c.comm, number, binding, {cookie, row, bytes}, run);
}

Operands operands(const void* in, void* out, size_t count, int op, int type) {
  return {in, out, count, size_of(Type(type)), Op(op), Type(type)};
}

Status begin_nonblocking(gpurdma_comm& c, Number number, const Operands& o, Reduce reduce, void* cookie) {
  gpurdma_runtime& runtime = *c.runtime;
  Run* run;
  const Status status = begin(c, number, o, reduce, cookie, &run);
  runtime.ask_for_progress(2);
  return status;
}

}  // namespace

extern "C" {

int gpurdma_runtime_create(const gpurdma_settings_t* settings, const gpurdma_host_t* host,
                           gpurdma_runtime_t** runtime) {
  return guarded([&] {
    char message[256];
    if (gpurdma_settings_check(settings, message, sizeof message) != GPURDMA_OK) {
      GPURDMA_LOG(error, "%s", message);
      return GPURDMA_INVALID;
    }
    static gpurdma_host_t sink;  // log lines know no runtime
    sink = *host;
    log::configure(log::Level(settings->verbose),
                   [](log::Level level, const char* line) { sink.log(int(level), line); });
    *runtime = new gpurdma_runtime(*settings, *host);
    return GPURDMA_OK;
  });
}

void gpurdma_runtime_destroy(gpurdma_runtime_t* runtime) {
  if (!runtime) return;
  runtime->ask_for_progress(0);
  delete runtime;
}

int gpurdma_progress(gpurdma_runtime_t* runtime) {
  if (!runtime->engine.try_lock()) return 0;
  const Hold hold(*runtime, std::adopt_lock);
  const int events = runtime->engine.progress();
  if (runtime->engine.active() + runtime->staging.active() != 0)
    runtime->idle_polls = 0;
  else if (runtime->progress_level == 2 && ++runtime->idle_polls > kIdlePolls)
    runtime->ask_for_progress(1);
  return events + int(runtime->engine.unclaimed());
}

int gpurdma_comm_create(gpurdma_runtime_t* runtime, const gpurdma_comm_info_t* info, gpurdma_comm_t** comm) {
  return guarded([&]() -> int {
    const Hold hold(*runtime);
    const CommHooks hooks{info->opaque, info->exchange, info->exchange_test, info->exchange_end, info->broken};
    auto c = std::make_unique<gpurdma_comm>();
    c->runtime = runtime;
    if (info->keys) {
      std::vector<uint32_t> nodes;
      for (int rank = 0; rank < info->size; ++rank) {
        nodes.push_back(gpurdma_key_node(info->keys[rank]));
        c->gpus += gpurdma_key_gpu(info->keys[rank]);
      }
      c->layout = runtime->layouts.intern({nodes.data(), nodes.size()});
    }
    c->forced = runtime->forced;
    c->comm = runtime->engine.new_communicator(info->rank, info->size, info->name ? info->name : "", hooks);
    if (!c->comm) return GPURDMA_NO_MEMORY;
    c->comm->oversubscribed = info->oversubscribed != 0;
    *comm = c.release();
    return GPURDMA_OK;
  });
}

int gpurdma_comm_force(gpurdma_comm_t* comm, const char* algorithm, size_t piece, int depth, int radix) {
  return guarded([&]() -> int {
    gpurdma_settings_t settings;
    char message[256];
    gpurdma_settings_default(&settings);
    settings.algorithm = algorithm;
    settings.piece = piece;
    settings.depth = depth;
    settings.radix = radix;
    if (gpurdma_settings_check(&settings, message, sizeof message) != GPURDMA_OK) {
      GPURDMA_LOG(error, "%s", message);
      return GPURDMA_INVALID;
    }
    const QuietHold hold(comm->runtime->engine);
    comm->forced = forced_by(settings);
    comm->last_count = SIZE_MAX;
    return GPURDMA_OK;
  });
}

void gpurdma_comm_destroy(gpurdma_comm_t* comm) {
  if (!comm) return;
  {
    const Hold hold(*comm->runtime);
    comm->runtime->engine.free_communicator(comm->comm);
    comm->layout.reset();
    // Here, since to give memory of a GPU back is to wait for what the application runs there.
    if (comm->runtime->gpus) comm->runtime->gpus->trim();
  }
  delete comm;
}

int gpurdma_allreduce(gpurdma_comm_t* c, const void* in, void* out, size_t count, int op, int type) {
  return guarded([&]() -> int {
    const Reduce reduce = host_reduce(Op(op), Type(type));
    if (!reduce) return GPURDMA_UNSUPPORTED;
    gpurdma_runtime& runtime = *c->runtime;
    const Hold hold(runtime);
    if (runtime.progress_level == 0) runtime.ask_for_progress(1);
    Run* run;
    Status status =
        begin(*c, c->comm->next_call(CallClass::blocking), operands(in, out, count, op, type), reduce, nullptr, &run);
    int host_error = 0;
    if (status == Status::ok) status = runtime.engine.wait(*run, &host_error);
    return host_error ? -host_error : int(status);
  });
}

int gpurdma_iallreduce(gpurdma_comm_t* c, const void* in, void* out, size_t count, int op, int type, void* cookie) {
  return guarded([&]() -> int {
    const Reduce reduce = host_reduce(Op(op), Type(type));
    if (!reduce) return GPURDMA_UNSUPPORTED;
    const QuietHold hold(c->runtime->engine);
    return int(begin_nonblocking(*c, c->comm->next_call(CallClass::nonblocking), operands(in, out, count, op, type),
                                 reduce, cookie));
  });
}

int gpurdma_allreduce_init(gpurdma_comm_t* c, const void* in, void* out, size_t count, int op, int type, void* cookie,
                           gpurdma_persistent_t** persistent) {
  return guarded([&]() -> int {
    if (!host_reduce(Op(op), Type(type))) return GPURDMA_UNSUPPORTED;
    const Hold hold(*c->runtime);
    auto p = std::make_unique<gpurdma_persistent>();
    *p = {c, in, out, count, Op(op), Type(type), c->comm->new_persistent(), cookie};
    *persistent = p.release();
    return GPURDMA_OK;
  });
}

int gpurdma_persistent_start(gpurdma_persistent_t* p) {
  return guarded([&]() -> int {
    const QuietHold hold(p->comm->runtime->engine);
    return int(begin_nonblocking(*p->comm, p->comm->comm->next_start(p->id),
                                 operands(p->in, p->out, p->count, int(p->op), int(p->type)),
                                 host_reduce(p->op, p->type), p->cookie));
  });
}

void gpurdma_persistent_free(gpurdma_persistent_t* persistent) { delete persistent; }

}  // extern "C"
