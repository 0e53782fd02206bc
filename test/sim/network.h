// A modelled network between ranks of one process: the simulator's Transport.
//
// Everything that a transport may do differently is drawn from the seed: delays and order of delivery, how many
// messages a sender has under way before the others queue, whether a send or fetch ends at once or later, whether a
// payload comes with its message or is offered, and at which address it lies. It also watches the engine: memory of a
// send in flight must not change, memory of a fetch in flight must not be written by anyone else, a payload is gone
// once arrived() has returned, and bulk data goes to those who granted credit for it.
//
// Time is virtual: step() runs what comes next. A port's events are handed to its inbox inside progress().
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "test/sim/random.h"
#include "transport/transport.h"

namespace gpurdma::sim {

// How one network behaves; percentages.
struct Behaviour {
  uint64_t longest_delay = 1;   // of a message or an end, in ticks of the virtual clock
  uint64_t distance = 1;        // how many times longer messages between nodes may take
  std::vector<uint32_t> nodes;  // of each rank; empty: all are on one
  unsigned in_order = 0;        // messages between two ranks that keep their order
  unsigned pending = 50;        // sends that end later
  unsigned offered = 50;        // payloads above kInline that are offered
  unsigned fetch_pending = 50;
  unsigned misaligned = 50;  // payloads at odd addresses
  uint64_t window = 8;       // messages of a port on the wire; the others queue
  unsigned slots = 50;       // times that the next message's slot can be reserved
  unsigned errors = 0;       // sends and fetches that fail, though nobody is lost

  static Behaviour draw(Random& random);
  std::string text() const;
};

class Network;

// GPU memory is known by addresses that no CPU can use, this far from where it really is.
constexpr uintptr_t kAway = uintptr_t(1) << 62;
inline void* real_address(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) & ~kAway);
}

class Port final : public Transport {
 public:
  Port(Network& network, int rank);

  void attach(Inbox* inbox) override { inbox_ = inbox; }
  Status address(Span<const char>* bytes) override;
  Status connect(Span<const char> address, PeerId* peer) override;
  Path path(PeerId peer) const override { return Path(1 + peer % 3); }
  Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override;
  void* reserve(PeerId peer, size_t bytes) override;
  void commit(PeerId peer, const Header& header, size_t bytes) override;
  Sent fetch(void* offer, void* data, size_t bytes, Token token) override;
  bool takes_gpu_memory(PeerId) const override { return gpu_memory_; }
  Sent send_from_gpu(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override {
    return send(peer, header, real_address(data), bytes, token);
  }
  bool takes_gpu_memory(void*) const override { return gpu_memory_; }
  Sent fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) override {
    return fetch(offer, real_address(data), bytes, token);
  }
  void refuse(void* offer) override;
  int progress() override;
  void check_peers() override {}
  void abandon(PeerId peer) override;

  // From now on it takes memory of GPUs.
  void learn_gpu_memory() { gpu_memory_ = true; }
  // A port that gives no address and reaches nobody.
  void disable() { able_ = false; }
  // Every peer is lost at once.
  void lose_all();
  // Sends, offers and fetches that have not ended.
  size_t open() const { return sending_.size() + offers_.size() + fetching_.size(); }

 private:
  friend class Network;
  struct Message;
  struct Peer {
    int rank;
    bool gone;               // lost or given up: nothing can be sent
    bool silent;             // nothing comes from there any more
    uint64_t last_delivery;  // for messages that keep their order
  };

  using MessagePtr = std::shared_ptr<Message>;

  Peer* peer_of(int rank);
  void transmit();
  void check_credit(int to, const Header& header, size_t bytes);
  void put_on_wire(const MessagePtr& message);
  void hand_over(const MessagePtr& message);
  void end_send(const MessagePtr& message, Status status);
  void end_send_later(const MessagePtr& message, Status status);
  void end_fetch(const MessagePtr& message, Status status);
  void end_all(int rank);
  void lose(int rank);

  Network& network_;
  const int rank_;
  Inbox* inbox_ = nullptr;
  bool able_ = true, gpu_memory_ = false;
  std::vector<Peer> peers_;          // by PeerId
  std::vector<MessagePtr> sending_;  // whose ends the engine waits for
  std::vector<MessagePtr> offers_;   // to us: until fetched, or refused
  std::vector<MessagePtr> fetching_;
  std::queue<MessagePtr> waiting_;           // for the window
  std::unique_ptr<std::vector<char>> slot_;  // what reserve() gave last
  PeerId slot_peer_ = 0;
  // By rank and operation: how many messages that rank has granted. Communicators number alike, so it is the most that
  // any of them was granted.
  std::map<std::pair<int, uint64_t>, uint32_t> credit_;
  uint64_t on_the_wire_ = 0;
  std::vector<std::shared_ptr<std::function<void()>>> due_;  // run by progress()
};

class Network {
 public:
  Network(int ranks, const Behaviour& behaviour, uint64_t seed);

  Port& port(int rank) { return *ports_[size_t(rank)]; }
  int ranks() const { return int(ports_.size()); }

  // Runs `what` later on behalf of `rank`: inside its next progress() after that time, or outside of it.
  enum class Where { inside, outside };
  void later(int rank, uint64_t delay, Where where, std::function<void()> what);
  uint64_t delay() { return 1 + random_.below(behaviour_.longest_delay); }
  uint64_t delay(int from, int to);

  // Goes to the next event; the rank whose progress() is to be called, or -1 when nothing can happen any more.
  int step();
  // From now on that rank does nothing, and those that know it learn of it some time.
  void kill(int rank);
  bool alive(int rank) const { return alive_[size_t(rank)]; }
  uint64_t events() const { return events_; }

  // What was wrong with the engine's use of memory; empty: nothing.
  const std::string& complaint() const { return complaint_; }
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }

 private:
  friend class Port;
  struct Event {
    uint64_t time, order;
    int rank;
    Where where;
    std::shared_ptr<std::function<void()>> what;
    bool operator<(const Event& other) const {  // the earliest on top
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Behaviour behaviour_;
  Random random_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<char> alive_;
  std::priority_queue<Event> queue_;
  uint64_t now_ = 0, events_ = 0;
  std::string complaint_;
};

}  // namespace gpurdma::sim
