// A transport under the test's control: it keeps what the engine hands it, and answers as it is told.
#pragma once
#include <cstring>
#include <functional>
#include <vector>

#include "transport/transport.h"

namespace gpurdma {

class ScriptedTransport final : public Transport {
 public:
  struct Sending {
    PeerId peer;
    Header header;
    const void* data;
    size_t bytes;
    Token token;
    bool from_gpu = false;
  };
  struct Fetching {
    void* offer;
    void* data;
    size_t bytes;
    Token token;
    bool to_gpu = false;
  };

  // What the engine asked for.
  std::vector<Sending> sent;
  std::vector<Fetching> fetched;
  std::vector<void*> refused;
  std::vector<PeerId> abandoned;
  int peer_checks = 0;
  // How it is answered. Offers are pointers to the payload.
  Sent send_result = Sent::done, fetch_result = Sent::done;
  bool takes_gpus = false;
  Status address_result = Status::ok, connect_result = Status::ok;
  std::vector<int32_t> slot;  // for messages that are reserved; empty: there is none
  int reservations = 0;
  std::function<int()> on_progress;
  Inbox* inbox = nullptr;

  void attach(Inbox* to) override { inbox = to; }
  Status address(Span<const char>* bytes) override {
    static constexpr char kAddress[] = "here";
    if (address_result == Status::ok) *bytes = {kAddress, sizeof kAddress};
    return address_result;
  }
  Status connect(Span<const char>, PeerId* peer) override {
    if (connect_result == Status::ok) *peer = 77;
    return connect_result;
  }
  Path path(PeerId) const override { return Path::shared_memory; }
  Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override {
    sent.push_back({peer, header, data, bytes, token});
    return send_result;
  }
  void* reserve(PeerId, size_t bytes) override {
    ++reservations;
    return bytes <= slot.size() * sizeof slot[0] ? slot.data() : nullptr;
  }
  void commit(PeerId peer, const Header& header, size_t bytes) override {
    sent.push_back({peer, header, slot.data(), bytes, kNoToken});
  }
  Sent fetch(void* offer, void* data, size_t bytes, Token token) override {
    fetched.push_back({offer, data, bytes, token});
    if (fetch_result == Sent::done) std::memcpy(data, offer, bytes);
    return fetch_result;
  }
  bool takes_gpu_memory(PeerId) const override { return takes_gpus; }
  Sent send_from_gpu(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override {
    sent.push_back({peer, header, data, bytes, token, true});
    return send_result;
  }
  bool takes_gpu_memory(void*) const override { return takes_gpus; }
  Sent fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) override {
    const Sent result = fetch(offer, data, bytes, token);
    fetched.back().to_gpu = true;
    return result;
  }
  void refuse(void* offer) override { refused.push_back(offer); }
  int progress() override { return on_progress ? on_progress() : 0; }
  void check_peers() override { ++peer_checks; }
  void abandon(PeerId peer) override { abandoned.push_back(peer); }

  // Messages of one kind, in the order in which they were sent.
  std::vector<Sending> of_kind(Header::Kind kind) const {
    std::vector<Sending> found;
    for (const Sending& s : sent)
      if (s.header.kind == kind) found.push_back(s);
    return found;
  }
};

}  // namespace gpurdma
