// Stager: carries messages between memory of a GPU and the transport, each through a piece of memory of ours:
//   staged   device -> pinned piece -> transport -> pinned piece -> device
//   direct   device -> piece of our device arena -> transport -> piece -> device, where the transport takes it: the
//            arena alone is registered, never memory of the application's
// Each side decides for itself.
// Copies, transport and copies of many messages overlap; how many are under way is the run's to say. Where pinned
// memory is short a piece is pageable memory: slower, but nobody waits for memory that a peer's progress must free.
// Called under the engine's lock. A message ends with Listener::carried(), from inside progress only.
#pragma once
#include <deque>

#include "base/counters.h"
#include "device/gpus.h"
#include "engine/memory.h"
#include "transport/transport.h"

namespace gpurdma {

class Stager final : public GpuInbox {
 public:
  class Listener {
   public:
    virtual void carried(Token token, Status status) = 0;

   protected:
    ~Listener() = default;
  };
  // The transport's tokens that are ours: the engine hands their ends to completed().
  static constexpr Token kMark = Token(1) << 63;

  // When messages go directly.
  enum class Direct : uint8_t { never, over_rdma, always };

  Stager(Gpus* gpus, Transport& transport, Memory& pageable, Counters& counters, Listener& listener, Direct direct)
      : gpus_(gpus),
        transport_(transport),
        pageable_(pageable),
        counters_(counters),
        listener_(listener),
        direct_(direct) {}

  // Sends what lies at `data` on that gpu, which stays as it is until carried(). Errors: no_memory, gpu.
  Status send(GpuId gpu, PeerId peer, const Header& header, const void* data, size_t bytes, Token token);
  // Brings a payload to `data` on that gpu; payload.data is not used any more when this returns. Errors: no_memory,
  // transport, gpu; the payload is taken or refused all the same.
  Status receive(GpuId gpu, const Payload& payload, void* data, Token token);

  void completed(Token token, Status status);  // of the transport, marked
  void worked(GpuToken token, Status status) override;

 private:
  enum class Kind : uint8_t { pinned, pageable, device };
  enum class Stage : uint8_t { copying_out, sending, fetching, copying_in };
  struct Load {
    uint32_t index = 0;
    Stage stage = Stage::copying_out;
    Kind kind = Kind::pinned;  // of the piece
    GpuId gpu = kHost;
    PeerId peer = 0;
    Token token = kNoToken;
    Header header{};
    void* piece = nullptr;
    void* data = nullptr;  // on the GPU, of a receive
    size_t bytes = 0;
    Load* next = nullptr;  // among those that are free
  };

  bool goes_directly(PeerId peer, size_t bytes) const;
  Load* take(GpuId gpu, size_t bytes, bool device, Token token);
  Transport::Sent fetch(Load& load, void* offer);
  void give(Load& load);
  void transmit(Load& load);
  void transmit_mark(const Load& load);
  void count(const Load& load);
  Status copy_in(Load& load);
  void end(Load& load, Status status);

  Gpus* const gpus_;
  Transport& transport_;
  Memory& pageable_;
  Counters& counters_;
  Listener& listener_;
  const Direct direct_;
  std::deque<Load> loads_;  // by the lower bits of a token
  Load* free_ = nullptr;
};

}  // namespace gpurdma
