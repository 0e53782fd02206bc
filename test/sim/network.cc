#include "test/sim/network.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace gpurdma::sim {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

template <class T>
bool take_out(std::vector<std::shared_ptr<T>>& list, const std::shared_ptr<T>& what) {
  const auto at = std::find(list.begin(), list.end(), what);
  if (at == list.end()) return false;
  *at = list.back();
  list.pop_back();
  return true;
}

constexpr unsigned char kPoison = 0xA5;

}  // namespace

// ---- behaviour ----

Behaviour Behaviour::draw(Random& random) {
  const auto some = [&] { return unsigned(random.one_of(std::vector<uint64_t>{0, 10, 50, 90, 100})); };
  Behaviour b;
  b.longest_delay = random.one_of(std::vector<uint64_t>{1, 4, 20, 100, 1000});
  b.distance = random.one_of(std::vector<uint64_t>{1, 10, 100});
  b.in_order = some();
  b.pending = some();
  b.offered = some();
  b.fetch_pending = some();
  b.misaligned = some();
  b.slots = some();
  b.window = random.one_of(std::vector<uint64_t>{1, 2, 8, 1000});
  return b;
}

std::string Behaviour::text() const {
  return format(
      "delay 1..%llu, %llu times as long between nodes, in order %u%%, pending %u%%, offered %u%%, fetch pending %u%%, "
      "misaligned %u%%, window %llu, slots %u%%, "
      "errors %u%%",
      static_cast<unsigned long long>(longest_delay), static_cast<unsigned long long>(distance), in_order, pending,
      offered, fetch_pending, misaligned, static_cast<unsigned long long>(window), slots, errors);
}

// ---- network ----

Network::Network(int ranks, const Behaviour& behaviour, uint64_t seed)
    : behaviour_(behaviour), random_(seed), alive_(size_t(ranks), 1) {
  for (int rank = 0; rank < ranks; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
}

void Network::later(int rank, uint64_t delay, Where where, std::function<void()> what) {
  queue_.push({now_ + delay, events_++, rank, where, std::make_shared<std::function<void()>>(std::move(what))});
}

uint64_t Network::delay(int from, int to) {
  const std::vector<uint32_t>& nodes = behaviour_.nodes;
  const bool near = nodes.empty() || nodes[size_t(from)] == nodes[size_t(to)];
  return near ? delay() : 1 + random_.below(behaviour_.longest_delay * behaviour_.distance);
}

int Network::step() {
  while (!queue_.empty()) {
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.time;
    if (!alive(event.rank)) continue;
    if (event.where == Where::inside)
      port(event.rank).due_.push_back(event.what);
    else
      (*event.what)();
    return event.rank;
  }
  return -1;
}

void Network::kill(int rank) {
  alive_[size_t(rank)] = 0;
  for (int other = 0; other < ranks(); ++other)
    if (other != rank) later(other, delay(), Where::inside, [this, other, rank] { port(other).lose(rank); });
}

// ---- ports ----

struct Port::Message {
  Port* from;
  int to;
  Header header;
  const void* data;  // the sender's memory
  size_t bytes;
  Token token;
  std::vector<char> copy;  // of data, when it was sent
  bool offered;
  bool sending;  // the sender's memory is in use
  void* into;    // of a fetch
  Token fetch_token;
};

Port::Port(Network& network, int rank) : network_(network), rank_(rank) {}

Status Port::address(Span<const char>* bytes) {
  if (!able_) return Status::transport;
  *bytes = {reinterpret_cast<const char*>(&rank_), sizeof rank_};
  return Status::ok;
}

Status Port::connect(Span<const char> address, PeerId* peer) {
  int rank = -1;
  if (address.size() == sizeof rank) std::memcpy(&rank, address.data(), sizeof rank);
  if (!able_ || rank < 0 || rank >= network_.ranks()) return Status::transport;
  if (!peer_of(rank)) {
    peers_.push_back({rank, false, false, 0});
    if (!network_.alive(rank))
      network_.later(rank_, network_.delay(), Network::Where::inside, [this, rank] { lose(rank); });
  }
  if (peer_of(rank)->gone) return Status::peer_lost;
  *peer = PeerId(peer_of(rank) - peers_.data());
  return Status::ok;
}

Port::Peer* Port::peer_of(int rank) {
  for (Peer& peer : peers_)
    if (peer.rank == rank) return &peer;
  return nullptr;
}

// ---- sending ----

Transport::Sent Port::send(PeerId id, const Header& header, const void* data, size_t bytes, Token token) {
  if (id >= peers_.size()) {
    network_.complain(format("rank %d sends to peer %u, which it never connected", rank_, id));
    return Sent::failed;
  }
  const Peer& peer = peers_[id];
  if (peer.gone) return Sent::failed;
  check_credit(peer.rank, header, bytes);
  const Behaviour& behaviour = network_.behaviour_;
  Random& random = network_.random_;
  const char* at = static_cast<const char*>(data);
  const bool error = token != kNoToken && random.percent(behaviour.errors);
  if (error && random.percent(50)) return Sent::failed;
  const bool offered = bytes > kInline && random.percent(behaviour.offered);
  const bool queues = on_the_wire_ >= behaviour.window;
  const bool pending = offered || queues || error || random.percent(behaviour.pending);
  auto message =
      std::make_shared<Message>(Message{this, peer.rank, header, data, bytes, token, std::vector<char>(at, at + bytes),
                                        offered, pending && token != kNoToken, nullptr, kNoToken});
  if (message->sending) sending_.push_back(message);
  if (error)
    end_send_later(message, Status::transport);
  else if (queues)
    waiting_.push(message);
  else
    put_on_wire(message);
  return pending ? Sent::pending : Sent::done;
}

void* Port::reserve(PeerId id, size_t bytes) {
  slot_.reset();  // of its last user, who did not commit
  if (id >= peers_.size() || peers_[id].gone) return nullptr;
  if (on_the_wire_ >= network_.behaviour_.window || !network_.random_.percent(network_.behaviour_.slots))
    return nullptr;
  slot_ = std::make_unique<std::vector<char>>(bytes, char(kPoison));
  slot_peer_ = id;
  return slot_->data();
}

void Port::commit(PeerId id, const Header& header, size_t bytes) {
  if (!slot_ || id != slot_peer_ || bytes != slot_->size())
    return network_.complain(format("rank %d commits %zu bytes to peer %u without a slot for them", rank_, bytes, id));
  check_credit(peers_[id].rank, header, bytes);
  put_on_wire(std::make_shared<Message>(Message{this, peers_[id].rank, header, nullptr, bytes, kNoToken,
                                                std::move(*slot_), false, false, nullptr, kNoToken}));
  slot_.reset();
}

void Port::check_credit(int to, const Header& header, size_t bytes) {
  if (header.kind == Header::Kind::data && bytes > kInline && header.position >= credit_[{to, header.operation}])
    network_.complain(
        format("rank %d sends %zu bytes to rank %d, which has granted no credit for them", rank_, bytes, to));
}

void Port::put_on_wire(const MessagePtr& message) {
  Peer& peer = *peer_of(message->to);
  uint64_t time = network_.now_ + network_.delay(rank_, message->to);
  if (network_.random_.percent(network_.behaviour_.in_order)) time = std::max(time, peer.last_delivery);
  peer.last_delivery = std::max(time, peer.last_delivery);
  ++on_the_wire_;
  Port& to = network_.port(message->to);
  network_.later(message->to, time - network_.now_, Network::Where::inside, [&to, message] { to.hand_over(message); });
  network_.later(rank_, time - network_.now_, Network::Where::outside, [this] {
    --on_the_wire_;
    transmit();
  });
}

void Port::transmit() {
  while (!waiting_.empty() && on_the_wire_ < network_.behaviour_.window) {
    put_on_wire(waiting_.front());
    waiting_.pop();
  }
}

void Port::end_send_later(const MessagePtr& message, Status status) {
  if (!message->sending || !network_.alive(rank_)) return;
  network_.later(rank_, network_.delay(), Network::Where::inside,
                 [this, message, status] { end_send(message, status); });
}

void Port::end_send(const MessagePtr& message, Status status) {
  if (!take_out(sending_, message)) return;
  const char* data = static_cast<const char*>(message->data);
  if (status == Status::ok && !std::equal(message->copy.begin(), message->copy.end(), data))
    network_.complain(
        format("rank %d wrote to memory that it was still sending to rank %d (operation %llx, message %u)", rank_,
               message->to, static_cast<unsigned long long>(message->header.operation), message->header.position));
  message->sending = false;
  inbox_->completed(message->token, status);
}

// ---- receiving ----

void Port::hand_over(const MessagePtr& message) {
  Random& random = network_.random_;
  const Peer* peer = peer_of(message->from->rank_);
  const bool lost_on_the_way = !network_.alive(message->from->rank_) && random.percent(50);
  if ((peer && peer->silent) || lost_on_the_way) return message->from->end_send_later(message, Status::transport);
  if (message->header.kind == Header::Kind::credit) {
    uint32_t& credit = credit_[{message->from->rank_, message->header.operation}];
    credit = std::max(credit, message->header.position);
  }
  if (message->offered) {
    offers_.push_back(message);
    inbox_->arrived(message->header, {nullptr, message->bytes, message.get()});
    if (std::find(offers_.begin(), offers_.end(), message) != offers_.end())
      network_.complain(format("rank %d was sent %zu bytes by rank %d before it had a place for them", rank_,
                               message->bytes, message->from->rank_));
    return;
  }
  const size_t offset = random.percent(network_.behaviour_.misaligned) ? random.one_of<uint64_t>({1, 2, 4, 8, 13}) : 0;
  std::unique_ptr<char[]> payload(new char[message->bytes + offset + 1]);
  std::copy(message->copy.begin(), message->copy.end(), payload.get() + offset);
  inbox_->arrived(message->header, {payload.get() + offset, message->bytes, nullptr});
  std::memset(payload.get(), kPoison, message->bytes + offset);
  message->from->end_send_later(message, Status::ok);
}

Transport::Sent Port::fetch(void* offer, void* data, size_t bytes, Token token) {
  const auto is_offer = [&](const MessagePtr& m) { return m.get() == offer; };
  const auto at = std::find_if(offers_.begin(), offers_.end(), is_offer);
  if (at == offers_.end() || bytes != (*at)->bytes) {
    network_.complain(format("rank %d fetches %zu bytes of what is not on offer", rank_, bytes));
    return Sent::failed;
  }
  const MessagePtr message = *at;
  take_out(offers_, message);
  const Peer* peer = peer_of(message->from->rank_);
  if (!network_.alive(message->from->rank_) || (peer && peer->gone)) return Sent::failed;
  const bool error = network_.random_.percent(network_.behaviour_.errors);
  if (error && network_.random_.percent(50)) {
    message->from->end_send_later(message, Status::ok);
    return Sent::failed;
  }
  message->into = data;
  message->fetch_token = token;
  std::memset(data, kPoison, bytes);
  fetching_.push_back(message);
  if (error || network_.random_.percent(network_.behaviour_.fetch_pending)) {
    const Status status = error ? Status::transport : Status::ok;
    network_.later(rank_, network_.delay(), Network::Where::inside,
                   [this, message, status] { end_fetch(message, status); });
    return Sent::pending;
  }
  message->fetch_token = kNoToken;
  end_fetch(message, Status::ok);
  return Sent::done;
}

void Port::end_fetch(const MessagePtr& message, Status status) {
  if (!take_out(fetching_, message)) return;
  const unsigned char* into = static_cast<unsigned char*>(message->into);
  if (std::any_of(into, into + message->bytes, [](unsigned char c) { return c != kPoison; }))
    network_.complain(
        format("rank %d wrote to memory into which it was fetching from rank %d", rank_, message->from->rank_));
  if (status == Status::ok) std::memcpy(message->into, message->copy.data(), message->bytes);
  message->from->end_send_later(message, Status::ok);
  if (message->fetch_token != kNoToken) inbox_->completed(message->fetch_token, status);
}

void Port::refuse(void* offer) {
  for (const MessagePtr& message : std::vector<MessagePtr>(offers_)) {
    if (message.get() != offer) continue;
    take_out(offers_, message);
    return message->from->end_send_later(message, Status::ok);
  }
  network_.complain(format("rank %d refuses what is not on offer", rank_));
}

int Port::progress() {
  const auto due = std::move(due_);
  due_.clear();
  for (const auto& what : due) (*what)();
  return int(due.size());
}

// ---- peers that are gone ----

void Port::end_all(int rank) {
  for (const MessagePtr& message : std::vector<MessagePtr>(sending_))
    if (message->to == rank) end_send(message, Status::peer_lost);
  for (const MessagePtr& message : std::vector<MessagePtr>(fetching_))
    if (message->from->rank_ == rank) end_fetch(message, Status::peer_lost);
}

void Port::lose(int rank) {
  Peer* peer = peer_of(rank);
  if (!peer || peer->silent) return;
  peer->gone = peer->silent = true;
  const PeerId id = PeerId(peer - peers_.data());
  end_all(rank);
  inbox_->lost(id);
}

void Port::lose_all() {
  for (size_t i = 0; i < peers_.size(); ++i) lose(peers_[i].rank);
}

// What was sent and has not arrived may be lost; then the peer learns that we are gone.
void Port::abandon(PeerId id) {
  const int rank = peers_[id].rank;
  if (peers_[id].gone) return;
  peers_[id].gone = true;
  network_.later(rank_, network_.delay(), Network::Where::inside, [this, rank] { end_all(rank); });
  if (!network_.random_.percent(50)) return;
  if (Peer* back = network_.port(rank).peer_of(rank_)) {
    back->silent = true;
    Port& port = network_.port(rank);
    network_.later(rank, network_.delay(), Network::Where::inside, [&port, this] {
      port.peer_of(rank_)->silent = false;
      port.lose(rank_);
    });
  }
}

}  // namespace gpurdma::sim
