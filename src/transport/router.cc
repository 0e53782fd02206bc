#include "transport/router.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"

namespace gpurdma {
namespace {

constexpr double kCloseSeconds = 5;
constexpr int kPollsForAll = 32;  // after which every ring was emptied, and UCX asked as well

// What stands in front of UCX's address.
struct Name {
  ProcessIdentity process;
  ArenaName arena;
  uint64_t unique_at;  // address of what holds process.unique: who can read it there can read our memory
  uint32_t pretended_node, reserved;
};

}  // namespace

Router::Router(size_t shared_memory, bool single_copy, uint32_t pretended_node, bool warns)
    : shared_memory_(shared_memory), allows_single_copy_(single_copy), pretended_node_(pretended_node), ucx_(warns) {}

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
  const Name name{own_, arena_.name(), reinterpret_cast<uint64_t>(&own_.unique), pretended_node_, 0};
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
  if (same_node) {
    const char* const trouble = shared_memory_ == 0 ? "it is turned off here (coll_gpurdma_shared_memory)"
                                                    : peer.arena.open(name.arena, name.process, own_);
    uint64_t unique = 0;
    if (!trouble && allows_single_copy_ &&
        SingleCopy::read(name.process.pid, name.unique_at, &unique, sizeof unique) == 0 &&
        unique == name.process.unique)
      peer.arena.tell_reading();
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
  peer.arena.give_up();
  given_up_.push_back(id);
  if (peer.on_ucx) ucx_.abandon(peer.ucx);
}

void Router::check_peers() {
  for (Peer& peer : peers_) {
    if (peer.lost) continue;
    peer.arena.rest();
    const bool dead = !peer.watch.alive();
    const bool gave_up = peer.arena.is_open() && arena_.state_of(peer.process.unique) == RingMemory::State::given_up;
    if (!dead && !gave_up) continue;
    for (int i = 0; i < kPollsForAll; ++i) progress();  // what it sent before
    if (!peer.lost)
      GPURDMA_LOG(error, "process %u on this node %s", peer.process.pid, dead ? "is dead" : "has given us up");
    if (dead) arena_.reclaim(peer.process.unique);
    lose(peer);
  }
  arena_.reclaim(0);
}

// ---- messages out ----

Transport::Sent Router::send(PeerId id, const Header& header, const void* data, size_t bytes, Token token) {
  if (peers_[id].lost) return Sent::failed;
  return send(peers_[id], {header, data, bytes, token});
}

bool Router::takes_gpu_memory(PeerId id) const {
  return can_use_ucx(peers_[id]) && ucx_.takes_gpu_memory(peers_[id].ucx);
}

Transport::Sent Router::send_from_gpu(PeerId id, const Header& header, const void* data, size_t bytes, Token token) {
  if (peers_[id].lost) return Sent::failed;
  return send(peers_[id], {header, data, bytes, token, true});
}

Transport::Sent Router::send(Peer& peer, const Message& message) {
  const Tried tried = peer.queue.empty() ? try_to_send(peer, message, false) : Tried::no_room;
  if (tried == Tried::done) return Sent::done;
  if (tried == Tried::failed) return Sent::failed;
  if (tried == Tried::no_room) {
    if (peer.queue.empty()) queueing_.push_back(peer.id);
    peer.queue.push_back(message);
  }
  return Sent::pending;
}

// Hands a message to the best channel that takes it. may_connect: opens an endpoint of UCX's, which cannot be done
// inside its callbacks.
Router::Tried Router::try_to_send(Peer& peer, const Message& m, bool may_connect) {
  if (peer.arena.is_open() && !m.in_gpu) {
    if (char* place = peer.arena.place(m.bytes)) {
      copy_for_peer(place, m.data, m.bytes);
      peer.arena.commit(m.header, m.bytes);
      return Tried::done;
    }
    if (peer.arena.takes(m.bytes)) return Tried::no_room;
    if (can_offer(peer, m.bytes)) return offer(peer, m);
    if (m.bytes <= PeerArena::kLargest && !can_use_ucx(peer)) return Tried::no_room;  // a lane will come free
  }
  if (!peer.on_ucx) {
    if (!may_connect) return Tried::no_room;
    if (connect_ucx(peer) != Status::ok) return Tried::failed;
  }
  return send_over_ucx(peer, m);
}

bool Router::can_offer(Peer& peer, size_t bytes) {
  if (bytes <= kInline || bytes > RingMemory::kMostOffered) return false;
  if (!peer.reads_us) peer.reads_us = arena_.is_read_by(peer.process.unique);
  return peer.reads_us;
}

Router::Tried Router::offer(Peer& peer, const Message& m) {
  if (peer.offers == RingMemory::kMostOffers) return Tried::no_room;
  const uint32_t id = single_copy_.enter(peer.id, m.token);
  if (peer.arena.send(m.header, m.bytes, RingMemory::Form::offer, {reinterpret_cast<uint64_t>(m.data), id})) {
    ++peer.offers;
    return Tried::pending;
  }
  (void)single_copy_.leave(id, peer.id);
  return Tried::no_room;
}

Router::Tried Router::send_over_ucx(Peer& peer, const Message& m) {
  switch (m.in_gpu ? ucx_.send_from_gpu(peer.ucx, m.header, m.data, m.bytes, m.token)
                   : ucx_.send(peer.ucx, m.header, m.data, m.bytes, m.token)) {
    case Sent::done:
      return Tried::done;
    case Sent::pending:
      return Tried::pending;
    case Sent::failed:
      break;
  }
  return Tried::failed;
}

void* Router::reserve(PeerId id, size_t bytes) {
  Peer& peer = peers_[id];
  if (peer.lost || !peer.queue.empty() || !peer.arena.is_open()) return nullptr;
  return peer.arena.place(bytes);
}

// Sends from the queue what finds room now.
void Router::drain(Peer& peer) {
  while (!peer.queue.empty()) {
    const Message message = peer.queue.front();
    const Tried tried = peer.lost ? Tried::failed : try_to_send(peer, message, true);
    if (tried == Tried::no_room) return;
    peer.queue.pop_front();
    if (tried == Tried::done) complete(message.token, Status::ok);
    if (tried == Tried::failed) complete(message.token, peer.lost ? Status::peer_lost : Status::transport);
  }
}

int Router::progress() {
  int events = arena_.poll(
      [this](const RingMemory::Cell& cell, const char* payload, uint64_t sender) { arrived(cell, payload, sender); });
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
  if (!given_up_.empty()) end_offers();
  if (ucx_in_use_ || ++polls_ % kPollsPerUcx == 0) events += ucx_.progress();
  return events;
}

// What peers that are gone have not taken, they will not take any more.
void Router::end_offers() {
  const std::vector<PeerId> peers = std::move(given_up_);
  given_up_.clear();
  for (const PeerId peer : peers)
    for (Token token; (token = single_copy_.leave_any(peer)) != kNoToken;) complete(token, Status::peer_lost);
}

// ---- messages in ----

void Router::arrived(const RingMemory::Cell& cell, const char* payload, uint64_t sender) {
  if (cell.form == RingMemory::Form::payload) {
    if (inbox_) inbox_->arrived(cell.header, {payload, cell.bytes, nullptr});
    return;
  }
  const auto is_sender = [sender](const Peer& peer) { return peer.process.unique == sender; };
  const auto peer = std::find_if(peers_.begin(), peers_.end(), is_sender);
  if (peer == peers_.end()) return;  // it cannot be: bulk data comes to those who asked for it
  if (cell.form == RingMemory::Form::taken) {
    const Token token = single_copy_.leave(cell.offer.id, peer->id);
    if (token == kNoToken) return;
    --peer->offers;
    return complete(token, Status::ok);
  }
  void* const offer = single_copy_.keep(peer->id, cell.offer);
  inbox_ ? inbox_->arrived(cell.header, {nullptr, cell.bytes, offer}) : refuse(offer);
}

void Router::UcxInbox::arrived(const Header& header, const Payload& payload) {
  router.ucx_in_use_ = true;
  router.inbox_->arrived(header, payload);
}

Transport::Sent Router::fetch(void* offer, void* data, size_t bytes, Token token) {
  SingleCopy::Taking* const taking = SingleCopy::taking(offer);
  if (!taking) return ucx_.fetch(offer, data, bytes, token);
  const Peer& peer = peers_[taking->peer];
  int error = SingleCopy::read(peer.process.pid, taking->offer.address, data, bytes);
  // It counts if afterwards the sender still was there and stood by its offer: else the memory, or even the process's
  // number, may have been another's by then.
  const bool stands = arena_.state_of(peer.process.unique) == RingMemory::State::open && peer.watch.alive();
  if (error == 0 && !stands) error = ESRCH;
  if (error != 0 && !peer.lost)
    GPURDMA_LOG(error, "reading %zu bytes of process %u failed: %s", bytes, peer.process.pid, std::strerror(error));
  say_taken(taking);
  return error == 0 ? Sent::done : Sent::failed;
}

bool Router::takes_gpu_memory(void* offer) const { return !SingleCopy::taking(offer) && ucx_.takes_gpu_memory(offer); }

Transport::Sent Router::fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) {
  return ucx_.fetch_to_gpu(offer, data, bytes, token);
}

void Router::refuse(void* offer) {
  SingleCopy::Taking* const taking = SingleCopy::taking(offer);
  taking ? say_taken(taking) : ucx_.refuse(offer);
}

void Router::say_taken(SingleCopy::Taking* taking) {
  Peer& peer = peers_[taking->peer];
  if (!peer.lost && !peer.arena.send({}, 0, RingMemory::Form::taken, {0, taking->offer.id}))
    GPURDMA_LOG(error, "process %u offers more than it may", peer.process.pid);
  single_copy_.drop(taking);
}

}  // namespace gpurdma
