#include "engine/communicator.h"

#include <cstring>
#include <utility>

#include "base/log.h"

namespace gpurdma {
namespace {

struct Hello {
  static constexpr uint32_t kMagic = 0x47505231;  // "GPR1": changes with every change of the wire format
  uint32_t magic;
  uint32_t handle;         // the sender's handle of this communicator
  uint32_t able;           // 0: the sender has no transport or closed the communicator: every operation with it fails
  uint32_t address_bytes;  // the transport's address follows
};

constexpr size_t kHelloRoom = 16384;  // bytes; addresses of UCX were seen between 60 bytes and 2 KiB

}  // namespace

struct Communicator::Greeting {
  int rank;
  void* exchange;
  size_t mine_bytes;
  std::unique_ptr<char[]> mine, theirs;
};

Communicator::Communicator(uint32_t handle, int rank, int size, std::string name, CommHooks hooks)
    : handle(handle), rank(rank), size(size), name(std::move(name)), hooks(hooks), links_(size_t(size)) {}

Communicator::~Communicator() {
  for (auto& greeting : greetings_) hooks.exchange_end(greeting->exchange);
}

bool Communicator::has_started(Number number) const {
  if (number.call_class() == CallClass::persistent) {
    const uint32_t id = number.persistent_id();
    return id < starts_.size() && number.persistent_start() < starts_[id];
  }
  const uint64_t ago = (next_[size_t(number.call_class())] - number.index()) % Number::kWrap;
  return ago != 0 && ago <= Number::kWrap / 2;
}

void Communicator::greet(int rank, Transport& transport) {
  Span<const char> address;
  const bool able = closed == Status::ok && transport.address(&address) == Status::ok;
  auto greeting = std::make_unique<Greeting>();
  greeting->rank = rank;
  greeting->mine_bytes = sizeof(Hello) + address.size();
  greeting->mine = std::make_unique<char[]>(greeting->mine_bytes);
  greeting->theirs = std::make_unique<char[]>(kHelloRoom);
  const Hello hello{Hello::kMagic, handle, able, uint32_t(address.size())};
  std::memcpy(greeting->mine.get(), &hello, sizeof hello);
  if (address.size()) std::memcpy(greeting->mine.get() + sizeof hello, address.data(), address.size());
  greeting->exchange = hooks.exchange(hooks.opaque, rank, greeting->mine.get(), greeting->mine_bytes,
                                      greeting->theirs.get(), kHelloRoom);
  if (!greeting->exchange) {
    GPURDMA_LOG(error, "communicator %s: the host could not start exchanging addresses with rank %d", name.c_str(),
                rank);
    link(rank).state = Link::State::lost;
    return;
  }
  link(rank).state = Link::State::exchanging;
  greetings_.push_back(std::move(greeting));
}

int Communicator::poll_greetings(Transport& transport) {
  int ended = 0;
  for (size_t i = 0; i < greetings_.size();) {
    size_t bytes = 0;
    const int result = hooks.exchange_test(greetings_[i]->exchange, &bytes);
    if (result == 0) {
      ++i;
      continue;
    }
    const std::unique_ptr<Greeting> greeting = std::move(greetings_[i]);
    greetings_[i] = std::move(greetings_.back());
    greetings_.pop_back();
    hooks.exchange_end(greeting->exchange);
    const Status status = result > 0 ? answered(*greeting, bytes, transport) : Status::peer_lost;
    if (result < 0)
      GPURDMA_LOG(error, "communicator %s: the exchange of addresses with rank %d failed", name.c_str(),
                  greeting->rank);
    link(greeting->rank).state = status == Status::ok ? Link::State::up : Link::State::lost;
    ++ended;
  }
  return ended;
}

Status Communicator::answered(const Greeting& greeting, size_t bytes, Transport& transport) {
  Hello hello{};
  if (bytes >= sizeof hello) std::memcpy(&hello, greeting.theirs.get(), sizeof hello);
  if (hello.magic != Hello::kMagic || hello.address_bytes != bytes - sizeof hello) {
    GPURDMA_LOG(
        error,
        "communicator %s: rank %d sent an address that cannot be read (%zu bytes); are two versions of gpurdma in use?",
        name.c_str(), greeting.rank, bytes);
    return Status::transport;
  }
  if (!hello.able) {
    GPURDMA_LOG(error, "communicator %s: rank %d cannot take part, see its own messages", name.c_str(), greeting.rank);
    return Status::remote;
  }
  Link& to = link(greeting.rank);
  const Status status = transport.connect({greeting.theirs.get() + sizeof hello, hello.address_bytes}, &to.peer);
  if (status != Status::ok) return status;
  to.handle = hello.handle;
  to.path = transport.path(to.peer);
  GPURDMA_LOG(debug, "communicator %s: rank %d reaches rank %d over %s", name.c_str(), rank, greeting.rank,
              name_of(to.path));
  return Status::ok;
}

}  // namespace gpurdma
