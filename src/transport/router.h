// Router: the transport that the engine gets. Reaches each peer over the best way there is: our own shared memory
// within a node, UCX for everyone else. Within a node, a payload that fits no slot is copied straight from the sender's
// memory where that is allowed, else it goes over UCX.
//
// Also watches the processes of this node, since nothing else tells of their death. A message that finds no slot now
// queues here; the receiver always makes room again, whatever its engine waits for, so queues drain. Not thread-safe.
#pragma once
#include <deque>
#include <vector>

#include "transport/arena.h"
#include "transport/process.h"
#include "transport/single_copy.h"
#include "transport/ucx.h"

namespace gpurdma {

class Router final : public Transport {
 public:
  // shared_memory: bytes of the arena that this process offers; 0: UCX carries everything that comes here.
  // single_copy: payloads that fit no slot may be copied straight from the sender's memory, where the system allows it.
  // pretended_node: processes that differ in it share no memory, for tests; 0: the real one. warns: of TCP, which all
  // processes of a job have or none.
  explicit Router(size_t shared_memory, bool single_copy = true, uint32_t pretended_node = 0, bool warns = true);
  ~Router() override;  // first sends what still queues; bounded by kCloseSeconds

  void attach(Inbox* inbox) override;
  Status address(Span<const char>* bytes) override;
  Status connect(Span<const char> address, PeerId* peer) override;
  Path path(PeerId peer) const override { return peers_[peer].path; }
  Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override;
  bool takes_gpu_memory(PeerId peer) const override;
  Sent send_from_gpu(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override;
  bool takes_gpu_memory(void* offer) const override;
  Sent fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) override;
  void* reserve(PeerId peer, size_t bytes) override;
  void commit(PeerId peer, const Header& header, size_t bytes) override { peers_[peer].arena.commit(header, bytes); }
  Sent fetch(void* offer, void* data, size_t bytes, Token token) override;
  void refuse(void* offer) override;
  int progress() override;
  void check_peers() override;
  void abandon(PeerId peer) override;

 private:
  // Polls of shared memory for one of UCX, while nothing is known to come that way: a poll of UCX takes as long as ten
  // of ours. It must be now and then, since a peer may find our lanes taken.
  static constexpr unsigned kPollsPerUcx = 32;

  struct Message {
    Header header;
    const void* data;
    size_t bytes;
    Token token;
    bool in_gpu = false;  // where data lies: UCX alone takes it
  };
  enum class Tried { done, pending, failed, no_room };
  struct Peer {
    PeerId id;
    ProcessIdentity process;
    ProcessWatch watch;
    PeerArena arena;                // open: messages go there
    std::vector<char> ucx_address;  // empty: it has none
    bool on_ucx = false;            // an endpoint is open
    PeerId ucx = 0;                 // UCX's name for it
    Path path = Path::shared_memory;
    bool lost = false;
    bool reads_us = false;      // so payloads can be offered
    uint32_t offers = 0;        // not taken yet
    std::deque<Message> queue;  // in order; nothing overtakes it
  };
  // What UCX tells us, passed on under the names of our peers.
  struct UcxInbox final : Inbox {
    explicit UcxInbox(Router& router) : router(router) {}
    void arrived(const Header& header, const Payload& payload) override;
    void completed(Token token, Status status) override { router.inbox_->completed(token, status); }
    void lost(PeerId peer) override { router.lose(router.peers_[router.of_ucx_[peer]]); }
    Router& router;
  };

  void start();
  bool can_use_ucx(const Peer& peer) const { return ucx_able_ && !peer.ucx_address.empty(); }
  Status connect_ucx(Peer& peer);
  bool can_offer(Peer& peer, size_t bytes);
  Tried offer(Peer& peer, const Message& message);
  Tried send_over_ucx(Peer& peer, const Message& message);
  Tried try_to_send(Peer& peer, const Message& message, bool may_connect);
  Sent send(Peer& peer, const Message& message);
  void arrived(const RingMemory::Cell& cell, const char* payload, uint64_t sender);
  void say_taken(SingleCopy::Taking* taking);
  void complete(Token token, Status status) {
    if (token != kNoToken && inbox_) inbox_->completed(token, status);
  }
  void drain(Peer& peer);
  void end_offers();
  void lose(Peer& peer);

  const size_t shared_memory_;
  const bool allows_single_copy_;
  const uint32_t pretended_node_;
  Inbox* inbox_ = nullptr;
  bool started_ = false;
  ProcessIdentity own_{};
  std::vector<char> address_;
  Arena arena_;
  UcxTransport ucx_;
  UcxInbox ucx_inbox_{*this};
  std::deque<Peer> peers_;      // by PeerId
  std::vector<PeerId> of_ucx_;  // by UCX's PeerId
  SingleCopy single_copy_;
  std::vector<PeerId> given_up_;  // whose payloads on offer are to be ended
  std::vector<PeerId> queueing_;  // peers with messages in their queues
  bool ucx_able_ = false, ucx_in_use_ = false;
  unsigned polls_ = 0;
};

}  // namespace gpurdma
