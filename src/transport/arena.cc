#include "transport/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "base/log.h"

namespace gpurdma {
namespace {

constexpr uint64_t kMagic = 0x334152454e414247;  // changes with every change of the layout
constexpr size_t kPage = 4096;

constexpr size_t on_page(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
constexpr size_t kRingsAt = on_page(sizeof(ArenaHeader));
constexpr size_t kLanesAt = on_page(kRingsAt + ArenaHeader::kRings * sizeof(RingMemory));
static_assert(kLanesAt + 2 * ArenaHeader::kLane <= Arena::kLeast, "the smallest arena has lanes for two");

}  // namespace

// ---- mapping ----

Mapping::~Mapping() {
  if (base_) munmap(base_, bytes_);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool Mapping::map(int fd, size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (base == MAP_FAILED) return false;
  (void)madvise(base, bytes, MADV_DONTFORK);
  base_ = static_cast<char*>(base);
  bytes_ = bytes;
  return true;
}

RingMemory& Mapping::ring(uint32_t index) const { return reinterpret_cast<RingMemory*>(base_ + kRingsAt)[index]; }

Lane Mapping::lane(uint32_t index) const {
  const size_t at = kLanesAt + index * ArenaHeader::kLane;
  return {base_ + at, at, ArenaHeader::kLane};
}

// ---- owner ----

Status Arena::create(size_t bytes, const ProcessIdentity& own) {
  bytes = on_page(bytes);
  fd_ = memfd_create("gpurdma", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // fallocate: memory that is short is an error here, and not a signal in whoever touches it first.
  if (fd_ < 0 || ftruncate(fd_, off_t(bytes)) != 0 || fallocate(fd_, 0, 0, off_t(bytes)) != 0 ||
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 || !mapping_.map(fd_, bytes)) {
    GPURDMA_LOG(warn, "no %zu bytes of shared memory (%s): UCX carries messages within the node", bytes,
                std::strerror(errno));
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    return Status::unsupported;
  }
  ArenaHeader& header = *new (mapping_.base()) ArenaHeader();
  header.magic = kMagic;
  header.owner = own.unique;
  header.lanes = uint32_t(std::min<size_t>((bytes - kLanesAt) / ArenaHeader::kLane, ArenaHeader::kMostLanes));
  receivers_.reserve(ArenaHeader::kRings);
  return Status::ok;
}

Arena::~Arena() {
  if (fd_ >= 0) close(fd_);
}

// Rings have been claimed that were free until now.
void Arena::meet(uint32_t rings) {
  for (uint32_t i = uint32_t(receivers_.size()); i < rings; ++i)
    receivers_.emplace_back(&mapping_.ring(i), mapping_.base(), mapping_.bytes());
}

const RingMemory* Arena::ring_of(uint64_t sender) const {
  for (uint32_t i = 0, used = rings_used(); i < used; ++i)
    if (sender_of(i) == sender) return &mapping_.ring(i);
  return nullptr;
}

bool Arena::is_read_by(uint64_t sender) const {
  const RingMemory* const ring = ring_of(sender);
  return ring && ring->sender_reads.load(std::memory_order_acquire) != 0;
}

RingMemory::State Arena::state_of(uint64_t sender) const {
  std::atomic_thread_fence(std::memory_order_acquire);  // what the caller has read, it has read before
  const RingMemory* const ring = ring_of(sender);
  return ring ? ring->state.load(std::memory_order_acquire) : RingMemory::State::closed;
}

void Arena::reclaim(uint64_t dead_sender) {
  if (!mapping_) return;
  ArenaHeader& header = mapping_.header();
  for (uint32_t i = 0; i < receivers_.size(); ++i) {
    const uint64_t sender = header.ring_sender[i].load(std::memory_order_acquire);
    if (sender == 0) continue;
    RingMemory& ring = mapping_.ring(i);
    const bool dead = sender == dead_sender;
    const bool closed =
        ring.state.load(std::memory_order_acquire) != RingMemory::State::open && !receivers_[i].waiting();
    if (!dead && !closed) continue;
    for (uint32_t lane = 0; lane < header.lanes; ++lane) {
      uint32_t holder = i + 1;
      header.lane_ring[lane].compare_exchange_strong(holder, 0, std::memory_order_acq_rel);
    }
    new (&ring) RingMemory();
    receivers_[i] = RingReceiver(&ring, mapping_.base(), mapping_.bytes());
    header.ring_sender[i].store(0, std::memory_order_release);
  }
}

// ---- sender ----

const char* PeerArena::open(const ArenaName& name, const ProcessIdentity& peer, const ProcessIdentity& own) {
  if (name.fd < 0) return "it offers no shared memory";
  if (peer.pid_space != own.pid_space || own.pid_space == 0)
    return "it is in another container (their process-id spaces differ)";
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%d", peer.pid, name.fd);
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return errno == EACCES || errno == EPERM ? "the system forbids to open its memory" : "its memory cannot be opened";
  struct stat info {};
  const char* trouble = nullptr;
  Mapping mapping;
  if (fstat(fd, &info) != 0 || uint64_t(info.st_size) != name.bytes || name.bytes < Arena::kLeast ||
      !mapping.map(fd, name.bytes))
    trouble = "its memory cannot be mapped";
  else if (mapping.header().magic != kMagic || mapping.header().owner != peer.unique)
    trouble = "its memory has another layout";
  close(fd);
  if (trouble) return trouble;

  ArenaHeader& header = mapping.header();
  for (uint32_t i = 0; i < ArenaHeader::kRings; ++i) {
    uint64_t free = 0;
    if (!header.ring_sender[i].compare_exchange_strong(free, own.unique, std::memory_order_acq_rel)) continue;
    uint32_t used = header.rings_used.load(std::memory_order_relaxed);
    while (used < i + 1 && !header.rings_used.compare_exchange_weak(used, i + 1, std::memory_order_acq_rel)) {
    }
    ring_ = i;
    sender_ = RingSender(&mapping.ring(i));
    mapping_ = std::move(mapping);
    return nullptr;
  }
  return "all its rings are taken";
}

PeerArena::~PeerArena() {
  if (mapping_) mapping_.ring(ring_).state.store(RingMemory::State::closed, std::memory_order_release);
}

PeerArena& PeerArena::operator=(PeerArena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(ring_, other.ring_);
  std::swap(lane_, other.lane_);
  std::swap(sent_at_rest_, other.sent_at_rest_);
  std::swap(sender_, other.sender_);
  return *this;
}

void PeerArena::give_up() {
  if (!mapping_) return;
  mapping_.ring(ring_).state.store(RingMemory::State::given_up, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before anything is written to what was on offer
  mapping_ = Mapping();
}

bool PeerArena::claim_lane() {
  ArenaHeader& header = mapping_.header();
  for (uint32_t i = 0; i < header.lanes; ++i) {
    uint32_t free = 0;
    if (header.lane_ring[i].load(std::memory_order_relaxed) != 0 ||
        !header.lane_ring[i].compare_exchange_strong(free, ring_ + 1, std::memory_order_acq_rel))
      continue;
    lane_ = i;
    sender_.lend(mapping_.lane(i));
    return true;
  }
  return false;
}

void PeerArena::rest() {
  if (!mapping_ || !sender_.lane().base) return;
  if (sender_.sent() == sent_at_rest_ && sender_.drained()) {
    mapping_.header().lane_ring[lane_].store(0, std::memory_order_release);
    sender_.lend({});
  }
  sent_at_rest_ = sender_.sent();
}

}  // namespace gpurdma
