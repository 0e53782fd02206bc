#include "transport/router.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"

namespace gpurdma {
namespace {

constexpr double kCloseSeconds = 5;

// What stands in front of UCX's address.
struct Name {
  ProcessIdentity process;
  ArenaName arena;
  uint32_t pretended_node, reserved;
};

}  // namespace

Router::Router(size_t shared_memory, uint32_t pretended_node)
    : shared_memory_(shared_memory), pretended_node_(pretended_node) {}

Router::~Router() {
  const uint64_t begin = clock::ticks();
  while (!queueing_.empty() && clock::seconds(clock::ticks() - begin) < kCloseSeconds) progress();
  for (const PeerId peer : queueing_)
    GPURDMA_LOG(warn, "messages to process %u were not taken within %.0f s", peers_[peer].process.pid, kCloseSeconds);
}

void Router::attach(Inbox* inbox) {
  inbox_ = inbox;
  ucx_.attach(inbox ? &ucx_inbox_ : nullptr);
}

// ---- peers ----

void Router::start() {
  started_ = true;
  own_ = ProcessIdentity::own();
  if (shared_memory_ != 0) (void)arena_.create(shared_memory_, own_);
  const Name name{own_, arena_.name(), pretended_node_, 0};
  address_.resize(sizeof name);
  std::memcpy(address_.data(), &name, sizeof name);
  Span<const char> ucx;
  ucx_able_ = ucx_.address(&ucx) == Status::ok;
  if (ucx_able_) address_.insert(address_.end(), ucx.begin(), ucx.end());
}

Status Router::address(Span<const char>* bytes) {
  if (!started_) start();
  const bool reachable = arena_.name().fd >= 0 || address_.size() > sizeof(Name);
  *bytes = {address_.data(), address_.size()};
  return reachable ? Status::ok : Status::transport;
}

Status Router::connect(Span<const char> address, PeerId* id) {
  if (!started_) start();
  Name name;
  if (address.size() < sizeof name) return Status::invalid;
  std::memcpy(&name, address.data(), sizeof name);
  for (const Peer& known : peers_) {
    if (std::memcmp(&known.process, &name.process, sizeof name.process) != 0) continue;
    if (known.lost) return Status::peer_lost;
    *id = known.id;
    return Status::ok;
  }
  Peer& peer = peers_.emplace_back();
  peer.id = PeerId(peers_.size() - 1);
  peer.process = name.process;
  peer.watch = ProcessWatch(name.process, own_);
  peer.ucx_address.assign(address.begin() + sizeof name, address.end());
  const bool same_node = name.process.machine == own_.machine && name.pretended_node == pretended_node_;
  if (same_node && shared_memory_ != 0) {
    const char* trouble = peer.arena.open(name.arena, name.process, own_);
    if (trouble)
      GPURDMA_LOG(info, "process %u on this node is reached over UCX, not over shared memory of our own: %s",
                  name.process.pid, trouble);
  }
  if (!peer.arena.is_open()) {
    const Status status = connect_ucx(peer);
    if (status != Status::ok) {
      peer.lost = true;
      return status;
    }
    peer.path = ucx_.path(peer.ucx);
  }
  *id = peer.id;
  return Status::ok;
}

Status Router::connect_ucx(Peer& peer) {
  if (peer.on_ucx) return Status::ok;
  if (!can_use_ucx(peer)) {
    GPURDMA_LOG(error, "no way to process %u: UCX did not start %s", peer.process.pid, ucx_able_ ? "there" : "here");
    return Status::peer_lost;
  }
  const Status status = ucx_.connect({peer.ucx_address.data(), peer.ucx_address.size()}, &peer.ucx);
  if (status != Status::ok) return status;
  of_ucx_.resize(std::max<size_t>(of_ucx_.size(), peer.ucx + 1));
  of_ucx_[peer.ucx] = peer.id;
  peer.on_ucx = ucx_in_use_ = true;
  return Status::ok;
}

void Router::lose(Peer& peer) {
  if (peer.lost) return;
  abandon(peer.id);
  if (inbox_) inbox_->lost(peer.id);
}

void Router::abandon(PeerId id) {
  Peer& peer = peers_[id];
  if (peer.lost) return;
  peer.lost = true;
  if (peer.on_ucx) ucx_.abandon(peer.ucx);
}

void Router::check_peers() {
  for (Peer& peer : peers_) {
    if (!peer.lost && peer.arena.is_open()) peer.arena.rest();
    if (peer.lost || peer.watch.alive()) continue;
    progress();  // what it sent before it ended
    GPURDMA_LOG(error, "process %u on this node is dead", peer.process.pid);
    arena_.reclaim(peer.process.unique);
    lose(peer);
  }
  arena_.reclaim(0);
}

// ---- messages ----

Transport::Sent Router::send(PeerId id, const Header& header, const void* data, size_t bytes, Token token) {
  Peer& peer = peers_[id];
  if (peer.lost) return Sent::failed;
  if (peer.queue.empty()) {
    if (peer.on_ucx && !(peer.arena.is_open() && peer.arena.takes(bytes)))
      return ucx_.send(peer.ucx, header, data, bytes, token);
    if (put(peer, header, data, bytes)) return Sent::done;
    queueing_.push_back(id);
  }
  peer.queue.push_back({header, data, bytes, token});
  return Sent::pending;
}

bool Router::put(Peer& peer, const Header& header, const void* data, size_t bytes) {
  char* place = peer.arena.place(bytes);
  if (!place) return false;
  if (bytes) std::memcpy(place, data, bytes);
  peer.arena.commit(header, bytes);
  return true;
}

void* Router::reserve(PeerId id, size_t bytes) {
  Peer& peer = peers_[id];
  if (peer.lost || !peer.queue.empty() || !peer.arena.is_open()) return nullptr;
  return peer.arena.place(bytes);
}

int Router::progress() {
  int events = 0;
  if (inbox_)
    events = arena_.poll([this](const Header& header, const char* data, size_t bytes) {
      inbox_->arrived(header, {data, bytes, nullptr});
    });
  if (!queueing_.empty()) {
    const std::vector<PeerId> queueing = std::move(queueing_);
    queueing_.clear();
    for (const PeerId id : queueing) {
      drain(peers_[id]);
      // A message that was asked for meanwhile, the queue being empty, has named the peer already.
      if (!peers_[id].queue.empty() && std::find(queueing_.begin(), queueing_.end(), id) == queueing_.end())
        queueing_.push_back(id);
    }
  }
  if (ucx_in_use_ || ++polls_ % kPollsPerUcx == 0) events += ucx_.progress();
  return events;
}

// Sends from the queue what finds room now. What can never go through shared memory goes over UCX, in its turn.
void Router::drain(Peer& peer) {
  while (!peer.queue.empty()) {
    const Queued message = peer.queue.front();
    Sent sent = Sent::failed;
    if (!peer.lost) {
      if (put(peer, message.header, message.data, message.bytes)) {
        sent = Sent::done;
      } else if (peer.arena.takes(message.bytes) || (message.bytes <= PeerArena::kLargest && !can_use_ucx(peer))) {
        return;  // a slot, or a lane, will come free
      } else if (connect_ucx(peer) == Status::ok) {
        sent = ucx_.send(peer.ucx, message.header, message.data, message.bytes, message.token);
      }
    }
    peer.queue.pop_front();
    if (sent == Sent::pending || message.token == kNoToken || !inbox_) continue;
    inbox_->completed(message.token, sent == Sent::done ? Status::ok
                                     : peer.lost        ? Status::peer_lost
                                                        : Status::transport);
  }
}

void Router::UcxInbox::arrived(const Header& header, const Payload& payload) {
  router.ucx_in_use_ = true;
  router.inbox_->arrived(header, payload);
}

}  // namespace gpurdma
