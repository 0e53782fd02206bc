// Transport: ordered messages to other processes, and the one interface between the engine and whatever carries them.
//
// UCX implements it for real (ucx.h), the simulator implements it with a modelled network. Positions in the header, not
// the order of arrival, say which message is which, so an implementation may deliver in any order. The engine calls it
// from one thread at a time; the Inbox is called from inside progress() and check_peers() only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/span.h"
#include "base/status.h"

namespace gpurdma {

// How the bytes reach a peer.
enum class Path : uint8_t { self, shared_memory, rdma, tcp };
constexpr int kPaths = 4;
const char* name_of(Path path);

// Travels in front of every message.
struct Header {
  enum class Kind : uint32_t {
    data,    // the payload of the position-th message of the operation
    failed,  // the same, but the sender failed: no payload
    credit,  // messages up to, not including, `position` may be sent
    closed,  // the sender closed the communicator after a failure, `position` is its Status; concerns every operation
  };
  uint64_t operation;  // class and number, see engine/number.h
  uint32_t comm;       // the receiver's handle of the communicator
  uint32_t source;     // the sender's rank in the communicator
  uint32_t position;
  Kind kind;
};

// A payload that arrived: either it is here (data), or the sender offers it and fetch() brings it.
struct Payload {
  const void* data;  // valid until arrived() returns; nullptr: offered
  size_t bytes;
  void* offer;  // for fetch() or refuse(), once; may be kept beyond arrived()
};

using PeerId = uint32_t;
using Token = uint64_t;                 // the engine's name for a send or fetch in flight
constexpr Token kNoToken = UINT64_MAX;  // a send whose end concerns nobody: completed() is not called for it

class Inbox {
 public:
  virtual void arrived(const Header& header, const Payload& payload) = 0;
  virtual void completed(Token token, Status status) = 0;  // a send or fetch that was pending; its memory is free now
  virtual void lost(PeerId peer) = 0;                      // nothing more will come from that peer
 protected:
  ~Inbox() = default;
};

class Transport {
 public:
  enum class Sent { done, pending, failed };

  virtual ~Transport() = default;
  virtual void attach(Inbox* inbox) = 0;  // before the first progress(); nullptr: what still comes concerns nobody

  // What a peer needs to reach us, to be carried there by other means.
  virtual Status address(Span<const char>* bytes) = 0;
  // The peer at that address; the same process gives the same PeerId. Cost: a look-up, or an endpoint when new. Errors:
  // peer_lost, also for one that was lost or abandoned before: nothing tells of it again.
  virtual Status connect(Span<const char> address, PeerId* peer) = 0;
  virtual Path path(PeerId peer) const = 0;

  // Sends header and payload. done: memory at data is free again. pending: completed(token) follows. Payloads of up to
  // kInline bytes always travel with the message and arrive as data. The header is copied.
  static constexpr size_t kInline = 8192;
  virtual Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) = 0;
  // The slot that the next message to that peer would travel in, for the caller to write the payload there itself: so a
  // result goes out in the pass that computes it. nullptr: there is none now, or not for so many bytes; send() then.
  // Aligned to at least 32 bytes. Followed by commit() at once, or by nothing.
  virtual void* reserve(PeerId peer, size_t bytes) = 0;
  // Sends what was written to the reserved slot. The header is copied.
  virtual void commit(PeerId peer, const Header& header, size_t bytes) = 0;
  // Brings an offered payload to [data, data + bytes). Same results as send.
  virtual Sent fetch(void* offer, void* data, size_t bytes, Token token) = 0;
  // Declines an offered payload; the sender's send completes as if it had arrived.
  virtual void refuse(void* offer) = 0;

  // The same with memory of a GPU, which the CPU cannot touch, where the transport takes that: for all messages to a
  // peer, and for an offer.
  virtual bool takes_gpu_memory(PeerId) const { return false; }
  virtual Sent send_from_gpu(PeerId, const Header&, const void* /*data*/, size_t /*bytes*/, Token) {
    return Sent::failed;
  }
  virtual bool takes_gpu_memory(void* /*offer*/) const { return false; }
  virtual Sent fetch_to_gpu(void* /*offer*/, void* /*data*/, size_t /*bytes*/, Token) { return Sent::failed; }

  // Moves messages on; returns how many events there were. Never waits.
  virtual int progress() = 0;
  // Looks whether peers still live, where the network itself does not tell; slow, for a caller that has waited long.
  // May call Inbox::lost.
  virtual void check_peers() = 0;
  // Gives a peer up: what is in flight to or from it completes, in a later progress(), with an error.
  virtual void abandon(PeerId peer) = 0;
};

}  // namespace gpurdma
